/* executor/place/times.c: the time of each region on each device: known, measured now, or estimated. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "executor/place/measure.h"
#include "executor/place/placement.h"

#define SAY_EVERY_NS UINT64_C(1000000000)
#define LAUNCH_NS 5000.0 /* where nothing is known: of a step, and of a byte that it reads or writes */
#define BYTE_NS 0.25

static void recall(heddle__place_room *room, heddle__survey *s) {
  for (uint32_t i = 0; i < s->n_items; i++) {
    heddle__item *x = &s->items[i];
    if (x->foreign) continue;
    x->known = heddle__costs_find(&room->costs, s->plan->devices[x->device].dev, &x->digest, &x->time);
    s->kept += x->known;
  }
}

/* ---- measuring */

static bool is_wanted(const heddle__item *x, bool whole) {
  return !x->known && !x->foreign && !x->refused && x->whole == whole;
}

/* In which pass an item's turn is: first what a plan would have, then nodes of groups alone, then all that was measured a
 * second time. */
static bool is_turn(const heddle__item *x, int pass) {
  return pass == 2 ? x->fresh && !x->refused : is_wanted(x, pass == 0);
}

/* How many a device lacks. */
static uint32_t lacks(const heddle__survey *s) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_items; i++) n += is_wanted(&s->items[i], true) || is_wanted(&s->items[i], false);
  return n;
}

/* Of two measurements at different times: what disturbs makes longer, so the shorter one counts, and their distance is
 * how far that may be off. */
static heddle__time both(heddle__time a, heddle__time b) {
  heddle__time x = a.ns <= b.ns ? a : b;
  const double apart = fabs(a.ns - b.ns) / 2;
  if (apart > x.margin) x.margin = apart;
  return x;
}

static heddle_status measure(heddle__place_room *room, heddle__survey *s, heddle__item *x, uint64_t left_ns,
                             heddle_error *err) {
  heddle_device *dev = s->plan->devices[x->device].dev;
  heddle_error why = {0};
  heddle__time time = {0, 0};
  heddle_status r = heddle__measure(dev, x->answer, left_ns, &time, &why);
  if (r == HEDDLE_OK) {
    x->time = x->fresh ? both(x->time, time) : time;
    s->measured += !x->known;
    x->fresh = !x->known;
    x->known = true;
    heddle__costs_add(&room->costs, dev, &x->digest, &x->time, x->label);
    return HEDDLE_OK;
  }
  if (r == HEDDLE_EDEVICE) {
    if (err != NULL) *err = why;
    return heddle__prefix_on(dev->name, err, r, "%s: measuring %s: ", dev->name, x->label);
  }
  x->refused = !x->known; /* a second measurement can be done without */
  x->fresh = false;
  if (x->known) return HEDDLE_OK;
  heddle__place_say(room->ctx, r == HEDDLE_ENOMEM || r == HEDDLE_ELIMIT ? HEDDLE_LOG_INFO : HEDDLE_LOG_WARN,
                    "%s could not be measured on %s, and its time is estimated: %s", x->label, dev->name, why.text);
  return HEDDLE_OK;
}

/* What a plan would have comes first, on all devices in turn, so that no device lacks all when the time is over. */
static heddle_status measure_all(heddle__place_room *room, heddle__survey *s, heddle_error *err) {
  const uint64_t start = heddle__now_ns();
  uint64_t said = start;
  const uint32_t all = lacks(s);
  bool opened[64] = {false};
  heddle_status r = HEDDLE_OK;
  for (int pass = 0; pass < 3; pass++)
    for (uint32_t i = 0; i < s->n_items && r == HEDDLE_OK; i++) {
      heddle__item *x = &s->items[i];
      const uint64_t now = heddle__now_ns();
      if (!is_turn(x, pass) || x->device >= 64) continue;
      if (now - start >= room->most_ns) break;
      if (!opened[x->device]) {
        r = heddle__device_open(s->plan->devices[x->device].dev, err);
        opened[x->device] = r == HEDDLE_OK;
        if (r != HEDDLE_OK) break;
      }
      r = measure(room, s, x, room->most_ns - (now - start), err);
      if (now - said < SAY_EVERY_NS) continue;
      said = now;
      heddle__place_say(room->ctx, HEDDLE_LOG_INFO, "measured %u of %u operators", (unsigned)s->measured,
                        (unsigned)all);
    }
  for (uint32_t d = 0; d < s->n_devices && d < 64; d++)
    if (opened[d]) heddle__device_close(s->plan->devices[d].dev);
  const uint32_t left = lacks(s);
  if (r == HEDDLE_OK && left > 0)
    heddle__place_say(
        room->ctx, HEDDLE_LOG_WARN,
        "%u of %u times were not measured in the %llu s that place.seconds allows, and are estimated; the "
        "next plan goes on with them",
        (unsigned)left, (unsigned)all, (unsigned long long)(room->most_ns / 1000000000u));
  return r;
}

/* ---- estimates */

static double bytes_of(const heddle_pregion *r) {
  const char *values = r->values.data;
  double bytes = 0;
  for (uint32_t i = 0; i < r->n_inputs + r->n_outputs; i++) {
    int32_t at = i < r->n_inputs ? r->inputs[i] : r->outputs[i - r->n_inputs];
    const heddle_pvalue *v = (const heddle_pvalue *)(const void *)(values + (uint64_t)at * r->values.stride);
    double n = (double)v->dtype.bits * v->dtype.lanes / 8;
    for (int32_t k = 0; k < v->ndim; k++) n *= (double)v->shape[k];
    bytes += n;
  }
  return bytes;
}

static double guess(const heddle__item *x) {
  return x->guess_ns > 0 ? x->guess_ns : LAUNCH_NS + bytes_of(x->answer->ask) * BYTE_NS;
}

/* By how much what was measured on a device differs from the guesses: the median, by counting. */
static double scale_of(const heddle__survey *s, uint32_t device) {
  double best = 1;
  uint32_t n = 0, best_off = UINT32_MAX;
  for (uint32_t i = 0; i < s->n_items; i++) n += s->items[i].known && s->items[i].device == device;
  for (uint32_t i = 0; i < s->n_items && n > 0; i++) {
    if (!s->items[i].known || s->items[i].device != device) continue;
    const double mine = s->items[i].time.ns / guess(&s->items[i]);
    uint32_t below = 0;
    for (uint32_t k = 0; k < s->n_items; k++)
      below += s->items[k].known && s->items[k].device == device && s->items[k].time.ns / guess(&s->items[k]) < mine;
    const uint32_t off = below > n / 2 ? below - n / 2 : n / 2 - below;
    if (off >= best_off) continue;
    best_off = off;
    best = mine;
  }
  return best;
}

static void estimate(heddle__survey *s) {
  for (uint32_t d = 0; d < s->n_devices; d++) {
    const double scale = scale_of(s, d);
    for (uint32_t i = 0; i < s->n_items; i++) {
      heddle__item *x = &s->items[i];
      if (x->known || x->device != d) continue;
      x->time.ns = x->time.margin = guess(x) * scale; /* as uncertain as it is large */
      s->estimated++;
    }
  }
}

/* A device that could not run what it offered is no choice, where there is another. */
static void drop_refused(heddle__survey *s) {
  for (uint32_t i = 0; i < s->n_nodes; i++)
    for (uint32_t d = 0; d < s->n_devices; d++) {
      const size_t at = (size_t)i * s->n_devices + d;
      uint32_t others = 0;
      if (!s->can[at] || !s->items[s->item[at]].refused || d == s->prefer[i]) continue;
      for (uint32_t k = 0; k < s->n_devices; k++) others += k != d && s->can[at - d + k];
      s->can[at] = others == 0;
    }
}

heddle_status heddle__survey_times(heddle__place_room *room, heddle__survey *s, heddle_error *err) {
  recall(room, s);
  heddle_status r = HEDDLE_OK;
  if (room->measuring != HEDDLE__MEASURE_NOTHING && lacks(s) > 0) {
    r = measure_all(room, s, err);
    heddle__costs_keep(&room->costs); /* of what was measured before a failure too */
  }
  if (r != HEDDLE_OK) return r;
  drop_refused(s);
  estimate(s);
  return HEDDLE_OK;
}
