/* executor/recall.c: see recall.h. What is kept is a row of numbers of 64 bits; a text is its length and its bytes, filled up
 * to such a number. docs/packages.md has the entries. */
#include "executor/recall.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"
#include "executor/model.h"
#include "executor/prepared.h"
#include "executor/region_key.h"
#include "plugins/common/cachefile.h"

#if HEDDLE_HAS_PACKAGES

#define MAGIC UINT64_C(0x324e414c50444c48) /* "HLDPLAN2" */
enum { QUERY = 1, PARTITION, PROPOSAL, END, MOST_TEXT = 1024 };

struct heddle__recall {
  heddle_model *m;
  char name[CACHEFILE_NAME];
  bool keeps, dropped, short_of_memory;
  const uint64_t *given; /* NULL where it keeps */
  uint64_t *kept;
  size_t at, count, room; /* count: numbers of given, or of kept */
};

/* ---- which plan it is */

static heddle_status add_setting(void *user, const char *rest, const char *value, heddle_error *err) {
  heddle__digest *d = user;
  (void)err;
  if (strcmp(rest, "cache_dir") == 0 || strcmp(rest, "cache_bytes") == 0) return HEDDLE_OK;
  heddle__digest_text(d, rest);
  heddle__digest_text(d, value);
  return HEDDLE_OK;
}

/* By what the answers may depend on besides the questions; the rest is compared by executor/prepared.c. */
static void set_name(heddle__recall *r, const heddle__order *o) {
  const heddle__request *q = &o->req;
  heddle__digest d = r->m->params->carried->content;
  const char *value = "";
  (void)heddle__config_get(q->ctx->config, "threads", &value, NULL);
  heddle__digest_text(&d, value);
  for (uint32_t i = 0; i < q->n_devices; i++) {
    char prefix[80];
    snprintf(prefix, sizeof prefix, "%s.", q->devices[i]->plugin->name);
    heddle__digest_text(&d, q->devices[i]->name);
    (void)heddle__config_each(q->ctx->config, prefix, add_setting, &d, NULL);
  }
  heddle__digest_text(&d, q->placer != NULL ? "auto" : ""); /* with what was measured the questions are others */
  if (q->limits != NULL) heddle__digest_add(&d, q->limits, q->n_devices * sizeof *q->limits);
  heddle__digest_add(&d, o->key, o->key_bytes);
  snprintf(r->name, sizeof r->name, "plan-%016llx%016llx.bin", (unsigned long long)d.word[0],
           (unsigned long long)d.word[1]);
}

/* Compiled functions are no questions to plugins; another head is an order's own. */
static bool is_usable(const heddle_model *m, const heddle__order *o) {
  const heddle__request *q = &o->req;
  return m->params != NULL && m->params->carried != NULL && !m->is_spare && !m->is_small && q->graph != &o->view &&
         q->library == NULL;
}

heddle__recall *heddle__recall_open(heddle_model *m, const heddle__order *o) {
  const void *data = NULL;
  uint64_t bytes = 0;
  if (!is_usable(m, o)) return NULL;
  const bool keeps = m->params->carried->plans != NULL;
  if (!keeps && m->carriage == NULL) return NULL;
  heddle__recall *r = heddle__alloc(1, sizeof *r);
  if (r == NULL) return NULL; /* plugins are asked */
  r->m = m;
  r->keeps = keeps;
  set_name(r, o);
  if (keeps) return r;
  const bool found = heddle__prepared_find(m, r->name, &data, &bytes) && bytes % sizeof *r->given == 0 &&
                     bytes >= sizeof *r->given && ((const uint64_t *)data)[0] == MAGIC;
  if (found) {
    r->given = data;
    r->count = (size_t)(bytes / sizeof *r->given);
    r->at = 1;
    return r;
  }
  heddle__logf(&m->ctx->log, HEDDLE_LOG_INFO, "prepared",
               "%s: it has no plan for these shapes, devices, settings and limits%s: plugins are asked",
               m->params->source, o->req.placer != NULL ? ", and automatic placement" : "");
  heddle__free(r);
  return NULL;
}

static void write_kept(const heddle__recall *r) {
  char path[4096];
  const int n = snprintf(path, sizeof path, "%s/%s", r->m->params->carried->plans, r->name);
  FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "wbe") : NULL;
  const uint64_t magic = MAGIC;
  bool good = file != NULL && fwrite(&magic, sizeof magic, 1, file) == 1 &&
              fwrite(r->kept, sizeof *r->kept, r->count, file) == r->count;
  if (file != NULL && fclose(file) != 0) good = false;
  if (!good)
    heddle__logf(&r->m->ctx->log, HEDDLE_LOG_WARN, "prepared", "%s: the plan is not packed: it could not be written",
                 path);
  if (!good && file != NULL) (void)remove(path);
}

bool heddle__recall_close(heddle__recall *r, heddle_status s) {
  if (r == NULL) return false;
  const bool made = s == HEDDLE_OK, stopped = s == HEDDLE_ETIMEOUT || s == HEDDLE_ECANCELED || s == HEDDLE_ENOMEM;
  const bool again = !r->keeps && (r->dropped || (!made && !stopped));
  const char *source = r->m->params->source;
  if (r->keeps && made && !r->short_of_memory) write_kept(r);
  if (again)
    heddle__logf(&r->m->ctx->log, HEDDLE_LOG_WARN, "prepared", "%s: its plan is ignored: %s", source,
                 r->dropped ? "the devices are asked other things than when it was made" : "it could not be followed");
  else if (!r->keeps && made)
    heddle__logf(&r->m->ctx->log, HEDDLE_LOG_INFO, "prepared", "%s: its plan is that of its package", source);
  heddle__free(r->kept);
  heddle__free(r);
  return again;
}

/* ---- keeping */

static void put(heddle__recall *r, uint64_t number) {
  if (r->count == r->room) {
    const size_t room = r->room == 0 ? 1024 : 2 * r->room;
    uint64_t *more = r->short_of_memory ? NULL : heddle__grow(r->kept, r->room, room, sizeof *more);
    r->short_of_memory = more == NULL;
    if (more == NULL) return;
    r->kept = more;
    r->room = room;
  }
  r->kept[r->count++] = number;
}

static void put_text(heddle__recall *r, const char *text) {
  size_t n = strlen(text);
  if (n > MOST_TEXT) n = MOST_TEXT;
  put(r, n);
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    memcpy(&word, text + i, n - i < 8 ? n - i : 8);
    put(r, word);
  }
}

/* What a question is compared by: the device, the region, the names of its nodes, and layouts, which a Reorder has. */
static heddle__digest question_of(const heddle_device *dev, const heddle_pregion *region) {
  char label[64];
  heddle__digest d = heddle__region_digest(region, label, sizeof label);
  heddle__digest_text(&d, dev->name);
  for (uint64_t i = 0; i < region->nodes.count; i++)
    heddle__digest_text(&d, ((const heddle_pnode *)region->nodes.data)[i].name);
  for (uint64_t i = 0; i < region->values.count; i++) {
    const heddle_pvalue *v = (const heddle_pvalue *)region->values.data + i;
    if (v->layout != 0) heddle__digest_add(&d, &v->layout, sizeof v->layout);
  }
  return d;
}

static void put_question(heddle__recall *r, uint64_t kind, const heddle_device *dev, const heddle_pregion *region) {
  const heddle__digest d = question_of(dev, region);
  put(r, kind);
  put(r, d.word[0]);
  put(r, d.word[1]);
}

static void put_entries(heddle__recall *r, const int32_t *entries, uint64_t n, uint32_t width) {
  put(r, n);
  for (uint64_t i = 0; i < width * n; i++) put(r, (uint64_t)entries[i]);
}

static void put_offer(heddle__recall *r, const heddle__offer *o, const heddle_pregion *region) {
  uint64_t cost;
  memcpy(&cost, &o->cost_ns, sizeof cost);
  put(r, o->flags);
  for (uint32_t i = 0; i < region->n_inputs; i++) put(r, o->input_layouts[i]);
  for (uint32_t i = 0; i < region->n_outputs; i++) put(r, o->output_layouts[i]);
  for (uint32_t i = 0; i < region->n_inputs; i++) put(r, o->input_flags[i]);
  put_entries(r, o->in_place, o->n_in_place, 2);
  put_entries(r, o->extends, o->n_extends, 3);
  put(r, o->workspace_bytes);
  put(r, o->workspace_align);
  put(r, o->kept_bytes);
  put(r, o->launch_bytes);
  put(r, cost);
}

void heddle__recall_answer(heddle__recall *r, const heddle_device *dev, const heddle__answer *answer, heddle_status s,
                           const heddle_error *err) {
  if (r == NULL || !r->keeps) return;
  put_question(r, QUERY, dev, answer->ask);
  put(r, (uint64_t)s);
  if (s != HEDDLE_OK) {
    put(r, err != NULL ? (uint64_t)(uint32_t)err->api_code : 0);
    put_text(r, err != NULL ? err->text : "");
    return;
  }
  put(r, answer->n_offers);
  for (uint32_t i = 0; i < answer->n_offers; i++) put_offer(r, &answer->offers[i], answer->ask);
}

void heddle__recall_partition_begin(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region) {
  if (r != NULL && r->keeps) put_question(r, PARTITION, dev, region);
}

void heddle__recall_proposal(heddle__recall *r, const uint32_t *nodes, uint32_t count) {
  if (r == NULL || !r->keeps) return;
  put(r, PROPOSAL);
  put(r, count);
  for (uint32_t i = 0; i < count; i++) put(r, nodes[i]);
}

void heddle__recall_partition_end(heddle__recall *r, heddle_status s) {
  if (r == NULL || !r->keeps) return;
  put(r, END);
  put(r, (uint64_t)s);
}

/* ---- giving: the package is checked for damage, and may be of somebody else's making all the same */

static uint64_t take(heddle__recall *r) {
  if (r->at < r->count) return r->given[r->at++];
  r->dropped = true;
  return 0;
}

/* A number below a limit, which a memory of ours has room for. */
static uint32_t take_below(heddle__recall *r, uint64_t limit) {
  const uint64_t n = take(r);
  if (n < limit) return (uint32_t)n;
  r->dropped = true;
  return 0;
}

static heddle_status drop(heddle__recall *r, heddle_error *err) {
  r->dropped = true;
  return heddle__fail(err, HEDDLE_EINVAL, "what the package remembers of its plan does not fit");
}

static bool is_question(heddle__recall *r, uint64_t kind, const heddle_device *dev, const heddle_pregion *region) {
  const heddle__digest now = question_of(dev, region);
  heddle__digest was;
  if (take(r) != kind) return false;
  was.word[0] = take(r);
  was.word[1] = take(r);
  return !r->dropped && heddle__digest_same(&was, &now);
}

static heddle_status take_failure(heddle__recall *r, heddle_status s, heddle_error *err) {
  char text[MOST_TEXT + 8] = "";
  const int32_t code = (int32_t)(uint32_t)take(r);
  const uint32_t n = take_below(r, MOST_TEXT + 1);
  for (uint32_t i = 0; i < n; i += 8) {
    const uint64_t word = take(r);
    memcpy(text + i, &word, sizeof word);
  }
  text[n] = '\0';
  if (r->dropped || s != HEDDLE_EUNSUPPORTED) return drop(r, err);
  heddle__fail(err, s, "%s", text);
  if (err != NULL) err->api_code = code;
  return s;
}

typedef struct room {
  uint64_t layouts[64];
  uint32_t flags[32];
  int32_t pairs[32], triples[48];
} room;

static uint64_t take_entries(heddle__recall *r, int32_t *entries, uint32_t width) {
  const uint64_t n = take_below(r, 17);
  for (uint64_t i = 0; i < width * n; i++) entries[i] = (int32_t)take(r);
  return n;
}

static heddle_status take_one(heddle__recall *r, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                              heddle_error *err) {
  room few;
  heddle_poffer o = {.struct_size = sizeof o};
  const uint32_t in = region->n_inputs, out = region->n_outputs;
  uint64_t *layouts = in + out <= 64 ? few.layouts : heddle__alloc((size_t)in + out, sizeof *layouts);
  uint32_t *flags = in <= 32 ? few.flags : heddle__alloc(in, sizeof *flags);
  heddle_status s = layouts != NULL && flags != NULL ? HEDDLE_OK : heddle__no_memory(err, "an offer");
  if (s == HEDDLE_OK) {
    o.flags = (uint32_t)take(r);
    for (uint32_t i = 0; i < in + out; i++) layouts[i] = take(r);
    for (uint32_t i = 0; i < in; i++) flags[i] = (uint32_t)take(r);
    o.n_in_place = take_entries(r, few.pairs, 2);
    o.n_extends = take_entries(r, few.triples, 3);
    o.input_layouts = layouts;
    o.output_layouts = layouts + in;
    o.input_flags = flags;
    o.in_place = few.pairs;
    o.extends = few.triples;
    o.workspace_bytes = take(r);
    o.workspace_align = take(r);
    o.kept_bytes = take(r);
    o.launch_bytes = take(r);
    const uint64_t cost = take(r);
    memcpy(&o.cost_ns, &cost, sizeof cost);
    s = r->dropped ? drop(r, err) : offer(sink, &o, err); /* it is checked as a plugin's own */
  }
  if (layouts != few.layouts) heddle__free(layouts);
  if (flags != few.flags) heddle__free(flags);
  return s;
}

bool heddle__recall_query(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region,
                          heddle_offer_fn offer, void *sink, heddle_status *out, heddle_error *err) {
  if (r == NULL || r->keeps) return false;
  if (r->dropped || !is_question(r, QUERY, dev, region)) {
    *out = drop(r, err);
    return true;
  }
  const heddle_status s = (heddle_status)(int64_t)take(r);
  if (s != HEDDLE_OK) {
    *out = take_failure(r, s, err);
    return true;
  }
  const uint32_t n = take_below(r, 4096);
  *out = HEDDLE_OK;
  for (uint32_t i = 0; i < n && *out == HEDDLE_OK; i++) *out = take_one(r, region, offer, sink, err);
  if (*out != HEDDLE_OK) r->dropped = true;
  return true;
}

bool heddle__recall_partition(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region,
                              heddle_propose_fn propose, void *sink, heddle_status *out, heddle_error *err) {
  if (r == NULL || r->keeps) return false;
  heddle_status s = r->dropped || !is_question(r, PARTITION, dev, region) ? drop(r, err) : HEDDLE_OK;
  while (s == HEDDLE_OK) {
    const uint64_t kind = take(r);
    if (kind == END) {
      if (take(r) != HEDDLE_OK || r->dropped) s = drop(r, err);
      break;
    }
    const uint32_t n = kind == PROPOSAL ? take_below(r, region->nodes.count + 1) : 0;
    uint32_t *nodes = n > 0 && !r->dropped ? heddle__alloc(n, sizeof *nodes) : NULL;
    if (nodes == NULL) {
      s = drop(r, err);
      break;
    }
    for (uint32_t i = 0; i < n; i++) nodes[i] = take_below(r, region->nodes.count);
    s = r->dropped ? drop(r, err) : propose(sink, nodes, n, err);
    heddle__free(nodes);
  }
  *out = s;
  return true;
}

#else

heddle__recall *heddle__recall_open(heddle_model *m, const heddle__order *o) {
  (void)m, (void)o;
  return NULL; /* it is of no package */
}

bool heddle__recall_close(heddle__recall *r, heddle_status s) {
  (void)r, (void)s;
  return false;
}

bool heddle__recall_query(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region,
                          heddle_offer_fn offer, void *sink, heddle_status *out, heddle_error *err) {
  (void)r, (void)dev, (void)region, (void)offer, (void)sink, (void)out, (void)err;
  return false;
}

void heddle__recall_answer(heddle__recall *r, const heddle_device *dev, const heddle__answer *answer, heddle_status s,
                           const heddle_error *err) {
  (void)r, (void)dev, (void)answer, (void)s, (void)err;
}

bool heddle__recall_partition(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region,
                              heddle_propose_fn propose, void *sink, heddle_status *out, heddle_error *err) {
  (void)r, (void)dev, (void)region, (void)propose, (void)sink, (void)out, (void)err;
  return false;
}

void heddle__recall_partition_begin(heddle__recall *r, const heddle_device *dev, const heddle_pregion *region) {
  (void)r, (void)dev, (void)region;
}

void heddle__recall_proposal(heddle__recall *r, const uint32_t *nodes, uint32_t count) {
  (void)r, (void)nodes, (void)count;
}

void heddle__recall_partition_end(heddle__recall *r, heddle_status s) {
  (void)r, (void)s;
}

#endif
