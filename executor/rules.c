/* executor/rules.c: placement rules and annotations as a model's options and the settings "place" and "annotations" give
 * them. Rules of the setting come first, so that those of the options take precedence. */
#include "executor/rules.h"

#include "executor/ranks.h"
#include "executor/ranks/spread.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/registry.h"

static heddle_status add(heddle_model *m, const char *text, size_t pattern, uint32_t device, heddle_error *err) {
  heddle__rule *grown = heddle__grow(m->rules, m->n_rules, (size_t)m->n_rules + 1, sizeof *grown);
  if (grown == NULL) return heddle__no_memory(err, "a placement rule");
  m->rules = grown;
  heddle__rule *r = &m->rules[m->n_rules++];
  r->device = device;
  r->text = heddle__strdup(text);
  r->pattern = heddle__strndup(text, pattern);
  return r->text != NULL && r->pattern != NULL ? HEDDLE_OK : heddle__no_memory(err, "a placement rule");
}

/* The position of a rule's device in the list in use. A name that means several devices is the first of them there. */
static heddle_status find_device(const heddle_model *m, const char *name, size_t *index, heddle_error *err) {
  const char *found = name;
  *index = 0;
  if (heddle__is_group(name, strlen(name))) {
    heddle_status s = heddle__group_among(m->ctx, name, m->devices, m->n_devices, index, err);
    if (s != HEDDLE_OK) return s;
  } else {
    heddle_device *dev = NULL;
    heddle_status s = heddle_context_find_device(m->ctx, name, &dev, err);
    if (s != HEDDLE_OK) return s;
    while (*index < m->n_devices && m->devices[*index] != dev) ++*index;
    found = dev->name;
  }
  if (*index < m->n_devices) return HEDDLE_OK;
  return heddle__fail_on(found, err, HEDDLE_EINVAL, "%s is not among the devices in use; add it to their list", found);
}

/* from: " (place from HEDDLE_PLACE)", or "" for a rule of the options. */
static heddle_status take(heddle_model *m, const char *text, const char *from, heddle_error *err) {
  const char *equals = text != NULL ? strrchr(text, '=') : NULL;
  size_t index = 0;
  if (text != NULL && strcmp(text, "auto") == 0) {
    m->flags |= HEDDLE_MODEL_PLACE_AUTO;
    return HEDDLE_OK;
  }
  if (equals == NULL || equals == text || equals[1] == '\0')
    return heddle__fail(err, HEDDLE_EINVAL,
                        "placement rule '%.200s'%s: expected PATTERN=DEVICE, such as 'conv*=cpu', or auto or off",
                        text != NULL ? text : "(null)", from);
  heddle_status s = find_device(m, equals + 1, &index, err);
  if (s != HEDDLE_OK) return heddle__prefix(err, s, "placement rule '%.200s'%s: ", text, from);
  return add(m, text, (size_t)(equals - text), (uint32_t)index, err);
}

void heddle__rules_forget(heddle_model *m) {
  for (uint32_t i = 0; i < m->n_rules; i++) {
    heddle__free((char *)m->rules[i].pattern);
    heddle__free((char *)m->rules[i].text);
  }
  heddle__free(m->rules);
  m->rules = NULL;
  m->n_rules = 0;
}

/* The setting: rules with commas between, or off. */
static heddle_status take_setting(heddle_model *m, heddle_error *err) {
  const char *value = NULL, *origin = NULL;
  (void)heddle_context_setting(m->ctx, "place", &value, &origin, NULL);
  if (value == NULL || value[0] == '\0' || heddle__config_is_off(value)) return HEDDLE_OK;
  char *from = heddle__format(" (place from %s)", origin);
  heddle_status s = from != NULL ? HEDDLE_OK : heddle__no_memory(err, "a placement rule");
  for (const char *at = value; s == HEDDLE_OK;) {
    while (*at == ' ') at++;
    size_t whole = strcspn(at, ","), n = whole;
    while (n > 0 && at[n - 1] == ' ') n--;
    char *rule = heddle__strndup(at, n);
    s = rule != NULL ? take(m, rule, from, err) : heddle__no_memory(err, "a placement rule");
    heddle__free(rule);
    at += whole;
    if (*at++ == '\0') break;
  }
  heddle__free(from);
  return s;
}

static heddle_status take_annotations(heddle_model *m, heddle_error *err) {
  const char *value = NULL, *origin = NULL;
  (void)heddle_context_setting(m->ctx, "annotations", &value, &origin, NULL);
  if (value == NULL || value[0] == '\0' || strcmp(value, "1") == 0 || strcmp(value, "on") == 0) return HEDDLE_OK;
  if (!heddle__config_is_off(value))
    return heddle__fail(err, HEDDLE_EINVAL, "the setting annotations is on or off, not '%.100s' (from %s)", value,
                        origin);
  m->flags |= HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  return HEDDLE_OK;
}

heddle_status heddle__rules_take(heddle_model *m, const char *const *place, size_t n, heddle_error *err) {
  size_t first = 0;
  if (m->is_part && heddle__context_is_cut(m->ctx)) return HEDDLE_OK; /* its nodes are annotated */
  if (heddle__spread_cuts(m->spread)) return take_annotations(m, err);
  for (size_t i = 0; i < n; i++)
    if (place[i] != NULL && strcmp(place[i], "off") == 0) first = i + 1;
  heddle_status s = take_annotations(m, err);
  if (s == HEDDLE_OK && first == 0) s = take_setting(m, err);
  for (size_t i = first; i < n && s == HEDDLE_OK; i++) s = take(m, place[i], "", err);
  return s;
}
