/* conformance/report_json.c: the report for programs: one JSON object, written at the end. docs/conformance.md has its
 * members. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"
#include "heddle/text.h"

/* A text of anyone's as JSON has it: one that is no UTF-8 is cleaned. */
static json_t *text_of(const char *text) {
  json_t *value = json_string(text);
  if (value != NULL) return value;
  const size_t bytes = 4 * strlen(text) + 1;
  char *clean = malloc(bytes);
  if (clean == NULL) return NULL;
  (void)heddle_text_clean(text, clean, bytes);
  value = json_string(clean);
  free(clean);
  return value;
}

static void put_text(json_t *object, const char *key, const char *text) {
  if (text != NULL) json_object_set_new(object, key, text_of(text));
}

static json_t *lines_of(const char *text) {
  json_t *list = json_array();
  for (const char *p = text; *p != '\0';) {
    const size_t n = strcspn(p, "\n");
    char *line = strndup(p, n);
    if (line != NULL) json_array_append_new(list, text_of(line));
    free(line);
    p += n + (p[n] == '\n');
  }
  return list;
}

const char *check_outcome_word(check_outcome outcome) {
  switch (outcome) {
  case CHECK_PASS: return "pass";
  case CHECK_FAIL: return "fail";
  case CHECK_SKIP: return "skip";
  case CHECK_FAIL_EXPECTED: return "expected-failure";
  case CHECK_PASS_UNEXPECTED: return "unexpected-pass";
  default: return "not-run";
  }
}

static json_t *device_object(const check_list *list, uint32_t index) {
  json_t *device = json_pack("{s:I}", "index", (json_int_t)index);
  put_text(device, "driver", list->drivers[index]);
  if (index >= list->n_about) return device;
  const check_about *a = &list->about[index];
  json_t *caps = json_array();
  put_text(device, "name", a->name);
  json_object_set_new(device, "dlpack_type", json_integer(a->type));
  json_object_set_new(device, "memory_bytes", json_integer((json_int_t)a->memory_bytes));
  json_object_set_new(device, "max_buffer_bytes", json_integer((json_int_t)a->max_buffer_bytes));
  json_object_set_new(device, "alignment", json_integer((json_int_t)a->alignment));
  json_object_set_new(device, "compute_units", json_integer(a->compute_units));
  json_object_set_new(device, "max_streams", json_integer(a->max_streams));
  for (unsigned bit = 0; bit < 64; bit++)
    if ((a->caps >> bit & 1) != 0 && check_cap_name(bit) != NULL)
      json_array_append_new(caps, json_string(check_cap_name(bit)));
  json_object_set_new(device, "capabilities", caps);
  return device;
}

static json_t *options_object(const check_options *o) {
  json_t *object = json_object(), *only = json_array(), *settings = json_array();
  if (o->device == UINT32_MAX) put_text(object, "device", "all");
  else json_object_set_new(object, "device", json_integer(o->device));
  for (size_t i = 0; i < o->only.count; i++) json_array_append_new(only, text_of(o->only.data[i]));
  for (size_t i = 0; i < o->settings.count; i++) json_array_append_new(settings, text_of(o->settings.data[i]));
  json_object_set_new(object, "only", only);
  json_object_set_new(object, "set", settings);
  json_object_set_new(object, "quick", json_boolean(o->quick));
  json_object_set_new(object, "timeout_s", json_real(o->seconds));
  json_object_set_new(object, "jobs", json_integer(o->jobs));
  return object;
}

static json_t *case_object(const check_list *list, const check *c) {
  json_t *object = json_object(), *follow = json_array();
  put_text(object, "name", c->name);
  put_text(object, "group", c->group->name);
  json_object_set_new(object, "device", json_integer(c->index));
  put_text(object, "result", check_outcome_word(c->outcome));
  put_text(object, "promise", c->what->promise);
  json_object_set_new(object, "seconds", json_real(c->seconds));
  if (c->outcome != CHECK_PASS) put_text(object, "reason", c->reason);
  if (c->outcome == CHECK_SKIP) put_text(object, "needs", c->needs);
  if (c->outcome != CHECK_PASS && c->outcome != CHECK_PASS_UNEXPECTED) put_text(object, "excuse", c->excuse);
  if (c->cause != 0) put_text(object, "consequence_of", list->data[c->cause - 1].name);
  for (size_t i = 0; i < list->count; i++)
    if (list->data[i].cause == (size_t)(c - list->data) + 1) json_array_append_new(follow, text_of(list->data[i].name));
  if (json_array_size(follow) > 0) json_object_set(object, "consequences", follow);
  json_decref(follow);
  if (c->notes != NULL) json_object_set_new(object, "notes", lines_of(c->notes));
  put_text(object, "output", c->output);
  return object;
}

static json_t *counts_object(const check_counts *n) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "passed", (json_int_t)n->passed, "failed", (json_int_t)n->failed,
                   "consequences", (json_int_t)n->consequences, "skipped", (json_int_t)n->skipped, "expected_failures",
                   (json_int_t)n->expected, "unexpected_passes", (json_int_t)n->unexpected);
}

static void begin(FILE *out, const check_options *o, const check_list *list) {
  (void)out, (void)o, (void)list;
}

static void each(FILE *out, const check_list *list, const check *c, size_t number) {
  (void)out, (void)list, (void)c, (void)number;
}

static void end(FILE *out, const check_options *o, const check_list *list, const check_counts *n) {
  json_t *root = json_object(), *plugin = json_object(), *devices = json_array(), *cases = json_array();
  json_t *abilities = json_array();
  char abi[32], date[32];
  json_object_set_new(root, "format", json_integer(1));
  put_text(root, "heddle", HEDDLE_VERSION);
  snprintf(abi, sizeof abi, "%d.%d", HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  put_text(root, "abi", abi);
  put_text(root, "date", check_date(list, date, sizeof date));
  json_object_set_new(root, "seconds", json_real(list->seconds));
  json_object_set_new(root, "passed", json_boolean(check_has_passed(list, n)));
  json_object_set_new(root, "counts", counts_object(n));
  put_text(plugin, "name", list->plugin[0] != '\0' ? list->plugin : NULL);
  put_text(plugin, "abi", list->plugin_abi[0] != '\0' ? list->plugin_abi : NULL);
  put_text(plugin, "file", o->library);
  json_object_set_new(plugin, "bytes", json_integer((json_int_t)list->file_bytes));
  json_object_set_new(root, "plugin", plugin);
  for (uint32_t i = 0; i < list->n_devices; i++) json_array_append_new(devices, device_object(list, i));
  json_object_set_new(root, "devices", devices);
  json_object_set_new(root, "options", options_object(o));
  for (size_t i = 0; i < list->count; i++)
    if (list->data[i].outcome != CHECK_WAITING && check_is_reported(&list->data[i]))
      json_array_append_new(cases, case_object(list, &list->data[i]));
  json_object_set_new(root, "cases", cases);
  for (size_t i = 0; i < list->n_abilities; i++)
    json_array_append_new(abilities, json_pack("{s:I, s:s, s:b}", "device", (json_int_t)list->abilities[i].index,
                                               "name", list->abilities[i].name, "works", list->abilities[i].works));
  json_object_set_new(root, "abilities", abilities);
  (void)json_dumpf(root, out, JSON_INDENT(2)); /* the stream keeps its error, which is looked at when it is closed */
  fputc('\n', out);
  json_decref(root);
}

const check_report check_report_json = {"json", true, begin, each, end};
