/* executor/budget/budget.c: limits on devices' memory as a user writes them, plans that keep them, and what is said where
 * none does. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/failure.h"
#include "core/alloc.h"
#include "executor/budget/net.h"

/* ---- reading limits */

typedef struct reader {
  const heddle_model *m;
  const char *from;
  bool strict;
  uint64_t *limits;
} reader;

/* "64MiB": a whole number and a unit, whatever its case; without one, bytes. */
static bool read_bytes(const char *text, size_t length, uint64_t *out) {
  static const char units[] = "bkmgt";
  uint64_t n = 0, unit = 1;
  size_t i = 0;
  for (; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
    if (n > (UINT64_MAX >> 4) / 10) return false;
    n = n * 10 + (uint64_t)(text[i] - '0');
  }
  if (i == 0) return false;
  char rest[4] = "";
  if (length - i > 3) return false;
  for (size_t k = 0; k < length - i; k++)
    rest[k] = text[i + k] >= 'A' && text[i + k] <= 'Z' ? (char)(text[i + k] + 'a' - 'A') : text[i + k];
  const char *at = rest[0] != '\0' ? strchr(units, rest[0]) : units;
  if (at == NULL) return false;
  bool bytes = at == units;
  if (strcmp(rest + (rest[0] != '\0'), bytes ? "" : "b") != 0 && (bytes || strcmp(rest + 1, "ib") != 0)) return false;
  uint64_t step = rest[0] != '\0' && rest[1] == 'i' ? 1024 : 1000;
  for (; at > units; at--) unit *= step;
  if (n > INT64_MAX / unit) return false;
  *out = n * unit;
  return true;
}

static heddle_status read_one(const reader *r, const char *name, size_t name_length, const char *size,
                              size_t size_length, heddle_error *err) {
  char device[80];
  uint64_t bytes = 0;
  bool is_off = (size_length == 3 && memcmp(size, "off", 3) == 0) || (size_length == 4 && memcmp(size, "none", 4) == 0);
  if (name_length == 0 || name_length >= sizeof device || (!is_off && !read_bytes(size, size_length, &bytes)))
    return heddle__fail(
        err, HEDDLE_EINVAL,
        "limit on memory '%.*s%s%.*s' (from %s): expected DEVICE=BYTES, such as sim:0=64MiB (B, KB, MB, "
        "GB, TB, KiB, MiB, GiB or TiB; 0 or off: no limit)",
        (int)(name_length < 80 ? name_length : 80), name, size_length > 0 ? "=" : "",
        (int)(size_length < 80 ? size_length : 80), size, r->from);
  memcpy(device, name, name_length);
  device[name_length] = '\0';
  heddle_device *dev = NULL;
  heddle_status s = heddle_context_find_device(r->m->ctx, device, &dev, err);
  if (s != HEDDLE_OK) return heddle__prefix_on(device, err, s, "limit on memory '%s' (from %s): ", device, r->from);
  uint32_t i = 0;
  while (i < r->m->n_devices && r->m->devices[i] != dev) i++;
  if (i < r->m->n_devices) r->limits[i] = bytes;
  else if (r->strict)
    return heddle__fail_on(
        dev->name, err, HEDDLE_EINVAL,
        "limit on memory: %s is not among the devices in use; add it to their list, or leave its limit "
        "out",
        dev->name);
  return HEDDLE_OK;
}

static heddle_status read_setting(void *user, const char *rest, const char *value, heddle_error *err) {
  return read_one(user, rest, strlen(rest), value, strlen(value), err);
}

static size_t trimmed(const char **text, size_t length) {
  for (; length > 0 && **text == ' '; length--) (*text)++;
  while (length > 0 && (*text)[length - 1] == ' ') length--;
  return length;
}

heddle_status heddle__limits_read(const heddle_model *m, const char *list, const char *from, bool strict,
                                  uint64_t *limits, heddle_error *err) {
  reader r = {m, from, strict, limits};
  heddle_status s = HEDDLE_OK;
  if (list == NULL) return heddle__config_each(m->ctx->config, "limit.memory.", read_setting, &r, err);
  if (strcmp(list, "off") == 0 || strcmp(list, "none") == 0 || strcmp(list, "0") == 0) return HEDDLE_OK;
  for (const char *p = list; s == HEDDLE_OK;) {
    size_t length = strcspn(p, ",");
    const char *item = p;
    size_t n = trimmed(&item, length), name = 0;
    while (name < n && item[name] != '=') name++;
    const char *size = item + name + (name < n);
    if (n > 0) {
      size_t size_length = trimmed(&size, n - name - (name < n));
      while (name > 0 && item[name - 1] == ' ') name--;
      s = read_one(&r, item, name, size, size_length, err);
    }
    if (p[length] == '\0') break;
    p += length + 1;
  }
  return s;
}

/* ---- what does not fit */

typedef struct page {
  char text[720];
  size_t used;
  size_t kept; /* for what is said last */
} page;

static bool say(page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What has no room is left out whole; false then. */
static bool say(page *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(p->text + p->used, sizeof p->text - p->used, format, args);
  va_end(args);
  bool has_room = n >= 0 && (size_t)n < sizeof p->text - p->used && p->used + (size_t)n + p->kept < sizeof p->text;
  if (has_room) p->used += (size_t)n;
  else p->text[p->used] = '\0';
  return has_room;
}

/* Who makes an instance: a node, or for what no step makes its value. */
static const char *name_of(const heddle__plan *plan, uint32_t instance) {
  const heddle__instance *it = &plan->instances[instance];
  if (it->value != HEDDLE__NONE) {
    const heddle__value *v = &plan->values[it->value];
    return v->kind == HEDDLE__VALUE_COMPUTED ? plan->regions[v->region].label : v->name;
  }
  for (uint32_t s = 0; s < plan->n_steps; s++)
    if (plan->steps[s].workspace == instance) return plan->regions[plan->steps[s].region].label;
  return "?";
}

static const char *kind_of(const heddle__instance *it) {
  switch (it->role) {
  case HEDDLE__ROLE_CONSTANT: return " (constant)";
  case HEDDLE__ROLE_INPUT: return " (input)";
  case HEDDLE__ROLE_WORKSPACE: return " (workspace)";
  default: return "";
  }
}

/* The largest that lie there at the peak, as far as there is room. */
static heddle_status say_peak(page *p, const heddle__plan *plan, uint32_t device, heddle_error *err) {
  enum { SHOWN = 6, MORE = 48 };
  budget_peak peak;
  heddle_status s = budget_peak_init(&peak, plan, device, err);
  if (s != HEDDLE_OK) return s;
  uint32_t left = 0, shown = 0;
  uint64_t bytes = 0;
  p->kept += MORE;
  say(p, "; most there at its peak:");
  for (; shown < SHOWN; shown++) {
    uint32_t best = HEDDLE__NONE;
    for (uint32_t i = 0; i < plan->n_instances; i++)
      if (peak.live[i] && (best == HEDDLE__NONE || plan->instances[i].bytes > plan->instances[best].bytes)) best = i;
    if (best == HEDDLE__NONE) break;
    if (!say(p, "%s '%.48s'%s %llu", shown > 0 ? "," : "", name_of(plan, best), kind_of(&plan->instances[best]),
             (unsigned long long)plan->instances[best].bytes))
      break;
    peak.live[best] = false;
  }
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    left += peak.live[i];
    bytes += peak.live[i] ? plan->instances[i].bytes : 0;
  }
  p->kept -= MORE;
  if (left > 0) say(p, "%s %u more with %llu", shown > 0 ? ", and" : "", (unsigned)left, (unsigned long long)bytes);
  heddle__free(peak.live);
  return HEDDLE_OK;
}

static heddle_status complain(const heddle__request *request, const heddle__plan *plan, heddle_error *err) {
  page p = {"", 0, 0};
  char words[500];
  heddle_status s = budget_suggest(request, plan, words, sizeof words, err);
  if (s != HEDDLE_OK) return s;
  p.kept = strlen(words) + 80;
  uint32_t worst = 0, n = 0;
  for (uint32_t d = 0; d < plan->n_devices; d++) {
    uint64_t over = budget_excess(plan, d), limit = plan->req.limits[d];
    if (over > budget_excess(plan, worst)) worst = d;
    if (over == 0) continue;
    say(&p, "%s%s needs %llu bytes, %llu more than its limit of %llu (from %s)", n++ == 0 ? "" : "; ",
        plan->devices[d].dev->name, (unsigned long long)heddle__plan_counted(plan, d), (unsigned long long)over,
        (unsigned long long)limit, plan->req.limits_from);
  }
  if (plan->fitted != NULL) say(&p, ", although %s", plan->fitted);
  s = say_peak(&p, plan, worst, err);
  if (s != HEDDLE_OK) return s;
  p.kept = 0;
  if (words[0] != '\0') say(&p, "; it fits with %s", words);
  else if (plan->n_devices > 1) say(&p, "; moving nodes to another device does not make it fit");
  else say(&p, "; list another device, to which nodes can be moved");
  return heddle__fail_on(plan->devices[worst].dev->name, err, HEDDLE_ELIMIT, "%s: %s", plan->req.graph->source, p.text);
}

heddle_status heddle__budget_fit(const heddle__request *request, heddle__plan **out, heddle_error *err) {
  uint64_t over = 0;
  heddle_status s = budget_fit(request, true, out, &over, err);
  if (s != HEDDLE_OK || over == 0) return s;
  s = complain(request, *out, err);
  heddle__plan_free(*out);
  *out = NULL;
  return s;
}
