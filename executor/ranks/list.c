/* executor/ranks/list.c: what the options of a model say of devices, for all ranks: "RANK/NAME" in lists, rules and limits. Each
 * rank resolves what is its own, and all ranks compare what they were given. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/device.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/registry.h"
#include "executor/ranks/own.h"

/* ---- words */

/* The part of an item before '/', which is a pattern of ranks; "*" where there is none. rest: what is behind. */
bool heddle__spread_is_for(const char *item, size_t n, uint32_t rank, const char **rest) {
  char number[16], pattern[64];
  const char *slash = memchr(item, '/', n);
  *rest = slash != NULL ? slash + 1 : item;
  if (slash == NULL) return true;
  if ((size_t)(slash - item) >= sizeof pattern) return false;
  memcpy(pattern, item, (size_t)(slash - item));
  pattern[slash - item] = '\0';
  snprintf(number, sizeof number, "%u", (unsigned)rank);
  return fnmatch(pattern, number, 0) == 0;
}

/* Calls each for every item of a list with commas; begin and length without blanks. */
heddle_status heddle__spread_each(const char *list, heddle__spread_item_fn each, void *user, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  for (const char *at = list; s == HEDDLE_OK;) {
    const size_t whole = strcspn(at, ",");
    size_t n = whole, skip = strspn(at, " ");
    if (skip > n) skip = n;
    while (n > skip && at[n - 1] == ' ') n--;
    if (n > skip) s = each(user, at + skip, n - skip, err);
    at += whole;
    if (*at++ == '\0') break;
  }
  return s;
}

static bool same_name(const char *a, const char *b) {
  const size_t n = strlen(a), k = strlen(b);
  if (strcmp(a, b) == 0) return true;
  return (strncmp(a, b, k) == 0 && strcmp(a + k, ":0") == 0) || (strncmp(a, b, n) == 0 && strcmp(b + n, ":0") == 0);
}

uint32_t heddle__spread_find(const heddle__spread *s, const char *name) {
  const char *rest = NULL;
  char *behind = NULL;
  const bool numbered =
      name[0] >= '0' && name[0] <= '9'; /* most names are: thousands of devices are passed over at once */
  const unsigned long number = numbered ? strtoul(name, &behind, 10) : 0;
  const bool plain = numbered && *behind == '/';
  for (uint32_t i = 0; i < s->n_devices; i++) {
    if (plain && s->devices[i].rank != number) continue;
    if (heddle__spread_is_for(name, strlen(name), s->devices[i].rank, &rest) &&
        (same_name(s->devices[i].name, rest) || fnmatch(rest, s->devices[i].name, 0) == 0))
      return i;
  }
  return HEDDLE__NONE;
}

/* ---- devices of all ranks */

heddle_status heddle__spread_add(heddle__spread *s, uint32_t rank, const char *name, heddle_error *err) {
  for (uint32_t i = 0; i < s->n_devices; i++)
    if (s->devices[i].rank == rank && strcmp(s->devices[i].name, name) == 0) return HEDDLE_OK;
  heddle__rank_device *grown = heddle__grow(s->devices, s->n_devices, (size_t)s->n_devices + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "the devices of ranks");
  s->devices = grown;
  s->devices[s->n_devices] = (heddle__rank_device){rank, heddle__strdup(name)};
  if (s->devices[s->n_devices].name == NULL) return heddle__no_memory(err, "the devices of ranks");
  s->n_devices++;
  if (rank != s->ranks->comm.rank) return HEDDLE_OK;
  char *more = s->own_devices != NULL ? heddle__format("%s,%s", s->own_devices, name) : heddle__strdup(name);
  heddle__free(s->own_devices);
  s->own_devices = more;
  return more != NULL ? HEDDLE_OK : heddle__no_memory(err, "the devices of ranks");
}

/* A list whose items name ranks that are not there is wrong on all ranks alike. */
static heddle_status check_item(void *user, const char *item, size_t n, heddle_error *err) {
  const heddle__spread *s = user;
  const char *rest = NULL;
  const size_t slash = strcspn(item, "/");
  for (uint32_t i = 0; i < s->ranks->comm.size; i++)
    if (heddle__spread_is_for(item, n, i, &rest)) return HEDDLE_OK;
  if (slash < n && memchr(item, ':', slash) != NULL)
    return heddle__fail(err, HEDDLE_ENODEV,
                        "device '%.*s': before '/' is a rank, a number or a pattern; devices of servers are remote:0, "
                        "remote:1 and so on",
                        (int)n, item);
  return heddle__fail(err, HEDDLE_ENODEV, "device '%.*s': there is no such rank; there %s %u", (int)n, item,
                      s->ranks->comm.size == 1 ? "is" : "are", (unsigned)s->ranks->comm.size);
}

/* ---- rules */

static heddle_status take_rule(heddle__spread *s, const char *text, size_t n, heddle_error *err) {
  char *copy = heddle__strndup(text, n);
  if (copy == NULL) return heddle__no_memory(err, "a placement rule");
  char *equals = strrchr(copy, '=');
  heddle_status status = HEDDLE_OK;
  if (strcmp(copy, "auto") == 0) {
    s->automatic = true;
  } else if (equals == NULL || equals == copy || equals[1] == '\0') {
    status = heddle__fail(
        err, HEDDLE_EINVAL,
        "placement rule '%.200s': expected PATTERN=RANK/DEVICE, such as 'conv*=1/cpu', or auto or off", copy);
  } else {
    const uint32_t device = heddle__spread_find(s, equals + 1);
    heddle__spread_rule *grown = heddle__grow(s->rules, s->n_rules, (size_t)s->n_rules + 1, sizeof *grown);
    if (device == HEDDLE__NONE)
      status = heddle__fail(err, HEDDLE_EINVAL,
                            "placement rule '%.200s': %s is not among the devices in use; add it to their list", copy,
                            equals + 1);
    if (grown == NULL) status = heddle__no_memory(err, "a placement rule");
    else s->rules = grown;
    if (status == HEDDLE_OK) {
      heddle__spread_rule *r = &s->rules[s->n_rules++];
      r->device = device;
      r->text = heddle__strdup(copy);
      r->pattern = heddle__strndup(copy, (size_t)(equals - copy));
      if (r->text == NULL || r->pattern == NULL) status = heddle__no_memory(err, "a placement rule");
    }
  }
  heddle__free(copy);
  return status;
}

static heddle_status rule_item(void *user, const char *item, size_t n, heddle_error *err) {
  return take_rule(user, item, n, err);
}

static heddle_status take_rules(heddle__spread *s, heddle_context *ctx, const heddle_model_options *o,
                                heddle_error *err) {
  const char *setting = NULL;
  size_t first = 0;
  heddle_status status = HEDDLE_OK;
  for (size_t i = 0; i < o->n_place; i++)
    if (o->place[i] != NULL && strcmp(o->place[i], "off") == 0) first = i + 1;
  if (first == 0) (void)heddle_context_setting(ctx, "place", &setting, NULL, NULL);
  if (setting != NULL && setting[0] != '\0' && !heddle__config_is_off(setting))
    status = heddle__spread_each(setting, rule_item, s, err);
  for (size_t i = first; i < o->n_place && status == HEDDLE_OK; i++)
    status = take_rule(s, o->place[i] != NULL ? o->place[i] : "", o->place[i] != NULL ? strlen(o->place[i]) : 0, err);
  return status;
}

/* With one rank, for the ordinary model. */
static heddle_status own_rules(heddle__spread *s, heddle_error *err) {
  s->own_rules = heddle__alloc((size_t)s->n_rules + 1, sizeof *s->own_rules);
  if (s->own_rules == NULL) return heddle__no_memory(err, "placement rules");
  s->own_rules[0] = "off";
  for (uint32_t i = 0; i < s->n_rules; i++) {
    s->own_rules[i + 1] = heddle__format("%s=%s", s->rules[i].pattern, s->devices[s->rules[i].device].name);
    if (s->own_rules[i + 1] == NULL) return heddle__no_memory(err, "placement rules");
  }
  return HEDDLE_OK;
}

/* ---- limits of memory: "RANK/NAME=BYTES" */

static heddle_status limit_item(void *user, const char *item, size_t n, heddle_error *err) {
  heddle__spread *s = user;
  const char *rest = NULL;
  uint32_t rank = 0;
  while (rank < s->ranks->comm.size && !heddle__spread_is_for(item, n, rank, &rest)) rank++;
  if (rank == s->ranks->comm.size)
    return heddle__fail(err, HEDDLE_ENODEV, "limit on memory '%.*s': there is no such rank; there %s %u", (int)n, item,
                        rank == 1 ? "is" : "are", (unsigned)rank);
  if (!heddle__spread_is_for(item, n, s->ranks->comm.rank, &rest)) return HEDDLE_OK;
  char *more = heddle__format("%s%s%.*s", s->own_memory != NULL ? s->own_memory : "", s->own_memory != NULL ? "," : "",
                              (int)(n - (size_t)(rest - item)), rest);
  heddle__free(s->own_memory);
  s->own_memory = more;
  return more != NULL ? HEDDLE_OK : heddle__no_memory(err, "limits on memory");
}

/* ---- all of it */

heddle_status heddle__spread_open(heddle_context *ctx, const heddle_graph *graph, const heddle_params *params,
                                  heddle_model_options *o, heddle__spread **out, heddle_error *err) {
  heddle_error room = {0};
  if (err == NULL) err = &room;
  *out = NULL;
  if ((o->n_place > 0 && o->place == NULL) || (o->n_keep > 0 && o->keep == NULL))
    return heddle__fail(err, HEDDLE_EINVAL, "the model's options count rules or kept nodes and give none");
  heddle__spread *s = heddle__alloc(1, sizeof *s);
  if (s == NULL) return heddle__no_memory(err, "a model over ranks");
  s->ranks = heddle__context_ranks(ctx);
  const char *list = o->devices;
  if (list == NULL) (void)heddle_context_setting(ctx, "devices", &list, NULL, NULL);
  if (list == NULL || list[0] == '\0') list = HEDDLE__SPREAD_DEFAULT;
  const char *test = NULL;
  (void)heddle_context_setting(ctx, "routes.test", &test, NULL, NULL);
  s->measures = HEDDLE_HAS_ROUTES && (test == NULL || !heddle__config_is_off(test));
  s->ignore_annotations = (o->flags & HEDDLE_MODEL_IGNORE_ANNOTATIONS) != 0;
  heddle_status status = heddle__spread_each(list, check_item, s, err);
  if (status == HEDDLE_OK) status = heddle__spread_exchange(s, ctx, graph, params, o, list, err);
  if (status == HEDDLE_OK) status = take_rules(s, ctx, o, err);
  if (status == HEDDLE_OK && s->ranks->comm.size == 1) status = own_rules(s, err);
  if (status == HEDDLE_OK && o->memory != NULL) status = heddle__spread_each(o->memory, limit_item, s, err);
  if (status != HEDDLE_OK) {
    heddle__spread_close(s);
    return status;
  }
  s->automatic = s->automatic || (o->flags & HEDDLE_MODEL_PLACE_AUTO) != 0;
  if (s->ranks->comm.size > 1) o->flags &= ~HEDDLE_MODEL_PLACE_AUTO;
  else if (s->automatic) o->flags |= HEDDLE_MODEL_PLACE_AUTO;
  o->devices = s->own_devices;
  o->memory = s->own_memory;
  o->place = s->own_rules;
  o->n_place = s->own_rules != NULL ? (size_t)s->n_rules + 1 : 0;
  *out = s;
  return HEDDLE_OK;
}

void heddle__spread_close(heddle__spread *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; i < s->n_devices; i++) heddle__free(s->devices[i].name);
  for (uint32_t i = 0; i < s->n_rules; i++) {
    heddle__free(s->rules[i].pattern);
    heddle__free(s->rules[i].text);
  }
  for (uint32_t i = 0; s->own_rules != NULL && i < s->n_rules; i++)
    heddle__free((char *)(uintptr_t)s->own_rules[i + 1]);
  heddle__free((void *)(uintptr_t)s->own_rules);
  heddle__free(s->devices);
  heddle__free(s->rules);
  heddle__free(s->own_devices);
  heddle__free(s->own_memory);
  heddle__free(s->device_of);
  heddle__free(s->fixed);
  heddle__free(s->types);
  heddle__free(s->entry_of);
  heddle__free((void *)(uintptr_t)s->names);
  heddle__script_free(&s->script);
  heddle__free(s->stages);
  heddle__free(s);
}

bool heddle__spread_cuts(const heddle__spread *s) {
  return s != NULL && s->ranks->comm.size > 1;
}

bool heddle__spread_idle(const heddle__spread *s) {
  return heddle__spread_cuts(s) && s->own_devices == NULL;
}

uint32_t heddle__spread_rank(const heddle__spread *s) {
  return s->ranks->comm.rank;
}

heddle_status heddle__spread_fail(const heddle__spread *s, heddle_status status, heddle_error *err) {
  return s != NULL ? heddle__ranks_fail(s->ranks, status, err) : status;
}

heddle_status heddle__spread_check(const heddle__spread *s, heddle_error *err) {
  return heddle__ranks_check(s->ranks, err);
}

const char *heddle__spread_device(const heddle__spread *s, uint32_t node) {
  return s->fixed[node] && s->device_of[node] != HEDDLE__NONE ? s->devices[s->device_of[node]].name : NULL;
}
