/* The group "settings": how a plugin describes its settings and its extensions, whether it keeps to that, and what it does
 * with a key or a value that there is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/kit_side.h"
#include "conformance/process_left.h"

enum { MOST_VALUE = 64 };

static const heddle_parray *list_of(const kit *k) {
  return &k->root.settings;
}

/* ---- the descriptions */

static void described(kit *k) {
  char why[CONTRACT_TEXT];
  heddle_psetting one;
  for (uint64_t i = 0; i <= list_of(k)->count; i++)
    if (!contract_setting_at(list_of(k), i, &one, why)) kit_fail(k, "%s", why);
  if (list_of(k)->count == 0) kit_skip(k, "the plugin describes no settings");
}

static void chain(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_extensions(k->root.extensions, why)) kit_fail(k, "%s", why);
}

static bool find(const kit *k, const char *key, heddle_psetting *out) {
  char why[CONTRACT_TEXT];
  for (uint64_t i = 0; i < list_of(k)->count; i++)
    if (contract_setting_at(list_of(k), i, out, why) && strcmp(out->key, key) == 0) return true;
  return false;
}

static bool is_hook(const char *key) {
  return strcmp(key, "lose_on_fill") == 0 || strcmp(key, "fail_on_fill") == 0 || strcmp(key, "adopt_own") == 0;
}

/* What the plugin asks host.config for while it opens, works and closes. */
static void asked(kit *k) {
  kit_side *side = k->side;
  heddle_psetting one;
  if (list_of(k)->count == 0) kit_skip(k, "the plugin describes no settings");
  process_work(k);
  kit_close_all(k);
  for (uint32_t i = 0; i < side->n_asked; i++)
    if (!find(k, side->asked[i], &one) && !is_hook(side->asked[i]) && !contract_host_setting(side->asked[i]))
      kit_fail(k, "the plugin reads the setting '%s', which its list of settings lacks", side->asked[i]);
}

/* ---- settings of one device */

/* device.open with one setting in a list of larger elements, whose texts are gone afterwards. */
static heddle_status open_with(kit *k, const char *key, const char *value, heddle_pdevice **out) {
  struct wide {
    heddle_pkeyvalue pair;
    uint64_t more[3];
  } *wide = malloc(sizeof *wide);
  char *texts = malloc(2 * MOST_VALUE + 8);
  if (wide == NULL || texts == NULL) kit_skip(k, "the kit is out of memory");
  snprintf(texts, MOST_VALUE, "%s", key);
  snprintf(texts + MOST_VALUE, MOST_VALUE, "%s", value);
  memset(wide, 0xff, sizeof *wide);
  wide->pair = (heddle_pkeyvalue){texts, texts + MOST_VALUE};
  const heddle_pdevice_options options = {
      .struct_size = sizeof options, .cookie = k->index + 1, .settings = {wide, 1, sizeof *wide}};
  *out = NULL;
  k->err = (heddle_error){0};
  const heddle_status s = k->t.device.open(k->instance, k->index, &options, out, &k->err);
  memset(texts, 'x', 2 * MOST_VALUE);
  memset(wide, 0xff, sizeof *wide);
  free(texts);
  free(wide);
  return s;
}

static void must_refuse(kit *k, const char *key, const char *value, const char *how) {
  heddle_pdevice *dev;
  char what[256];
  const heddle_status s = open_with(k, key, value, &dev);
  snprintf(what, sizeof what, "device.open with the setting '%.60s' of the device, %s", key, how);
  if (s == HEDDLE_OK) kit_close(k, dev);
  kit_fails(k, s, HEDDLE_EINVAL, HEDDLE_EINVAL, what);
  if (dev != NULL && s != HEDDLE_OK) kit_fail(k, "%s: it failed, and its out-argument is not as before", what);
  if (strstr(k->err.text, key) == NULL) kit_fail(k, "%s: its text does not name it: \"%.600s\"", what, k->err.text);
}

static void unknown(kit *k) {
  must_refuse(k, "no_such_setting", "1", "which there is not");
  must_refuse(k, "no_such_setting", "", "which there is not");
  kit_close(k, kit_open(k, k->index));
}

/* A value that the description excludes; false where it excludes none. */
static bool bad_value(const heddle_psetting *s, char *out) {
  switch (s->type) {
  case HEDDLE_SETTING_SWITCH:
  case HEDDLE_SETTING_WORD: strcpy(out, "no_such_word"); return true;
  case HEDDLE_SETTING_NUMBER:
    if (s->high < UINT64_MAX) snprintf(out, MOST_VALUE, "%llu", (unsigned long long)s->high + 1);
    else strcpy(out, "12x");
    return true;
  default: return false;
  }
}

/* Settings that can be given for one device: the default is taken, what the description excludes is not. */
static void of_device(kit *k) {
  char why[CONTRACT_TEXT], bad[MOST_VALUE];
  heddle_psetting one;
  uint32_t n = 0;
  for (uint64_t i = 0; i < list_of(k)->count; i++) {
    heddle_pdevice *dev;
    if (!contract_setting_at(list_of(k), i, &one, why)) kit_skip(k, "%s (settings/list)", why);
    if ((one.flags & HEDDLE_SETTING_DEVICE) == 0) continue;
    n++;
    if (one.default_value[0] != '\0' && strlen(one.default_value) < MOST_VALUE) {
      char what[160];
      snprintf(what, sizeof what, "device.open with the default of the setting '%.60s', for this device", one.key);
      kit_ok(k, open_with(k, one.key, one.default_value, &dev), what);
      kit_close(k, dev);
    }
    if (!bad_value(&one, bad)) continue;
    snprintf(why, sizeof why, "with the value '%s', which its description excludes", bad);
    must_refuse(k, one.key, bad, why);
  }
  if (n == 0) kit_skip(k, "the plugin describes no setting of one device (HEDDLE_SETTING_DEVICE)");
}

/* ---- values by host.config */

static bool reads(const kit_side *side, const char *key) {
  for (uint32_t i = 0; i < side->n_asked; i++)
    if (strcmp(side->asked[i], key) == 0) return true;
  return false;
}

/* Opens an instance and a device of it; the status of what failed. */
static heddle_status open_all(kit *k) {
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = k->index + 1};
  uint32_t n = 0;
  k->err = (heddle_error){0};
  heddle_status s = k->root.open_instance(&k->host, &k->instance, &k->err);
  if (s != HEDDLE_OK) k->instance = NULL;
  if (s == HEDDLE_OK) s = k->root.device_count(k->instance, &n, &k->err);
  if (s == HEDDLE_OK && k->index < n) s = k->t.device.open(k->instance, k->index, &options, &k->dev, &k->err);
  if (s != HEDDLE_OK) k->dev = NULL;
  return s;
}

/* A value that the description excludes is refused, or the user is warned of it. What the plugin has not read when a device
 * has been opened it cannot know. */
static void values(kit *k) {
  char why[CONTRACT_TEXT], bad[MOST_VALUE];
  heddle_psetting one;
  uint32_t n = 0;
  for (uint64_t i = 0; i < list_of(k)->count; i++) {
    if (!contract_setting_at(list_of(k), i, &one, why)) kit_skip(k, "%s (settings/list)", why);
    if (is_hook(one.key) || !reads(k->side, one.key) || !bad_value(&one, bad)) continue;
    n++;
    k->side->forced_key = one.key;
    k->side->forced_value = bad;
    k->side->warned = false;
    const heddle_status s = open_all(k);
    kit_close_all(k);
    k->side->forced_key = NULL;
    snprintf(why, sizeof why, "opening with the setting '%.60s' set to '%.60s', which its description excludes,",
             one.key, bad);
    if (s == HEDDLE_OK && k->side->warned) continue;
    kit_fails(k, s, HEDDLE_EINVAL, HEDDLE_EINVAL, why);
    if (strstr(k->err.text, one.key) == NULL)
      kit_fail(k, "%s: the text does not name it: \"%.600s\"", why, k->err.text);
  }
  if (n == 0)
    kit_skip(k, "the plugin describes no setting of which a value is excluded, and which it reads when it is opened");
}

static void config_values(kit *k) {
  kit_close_all(k); /* by then it has asked for what it reads */
  values(k);
}

/* ---- the host's extensions */

/* A chain whose members the plugin cannot know, of which there is nothing behind the head. */
static void strangers(kit *k) {
  static const heddle_pextension last = {
      .struct_size = sizeof last, .version = 1, .name = "example.com/nothing", .next = NULL};
  static const heddle_pextension first = {
      .struct_size = sizeof first, .version = UINT32_MAX, .name = "example.com/unknown", .next = &last};
  if (!kit_stage_library(k)) kit_skip(k, "%s", k->err.text);
  k->host.extensions = &first;
  if (!kit_stage_entry(k) || !kit_stage_instance(k) || !kit_stage_device(k)) kit_fail(k, "%s", k->err.text);
  process_work(k);
  kit_close_all(k);
}

KIT_GROUP(kit_settings, "settings",
          {"settings/list", "each setting is described by key, type, default, values and help, as the user writes them",
           KIT_STAGE_ENTRY, 0, 0, described, NULL},
          {"settings/extensions", "each member of the chain of extensions has a size and a name, and the chain ends",
           KIT_STAGE_ENTRY, 0, 0, chain, NULL},
          {"settings/strangers", "a reader of the host's extensions passes over every name that it does not know",
           KIT_STAGE_FILE, KIT_OPENS | KIT_REFUSES, 30, strangers, NULL},
          {"settings/asked", "a plugin that describes its settings reads no others", KIT_STAGE_DEVICE, KIT_REFUSES, 30,
           asked, NULL},
          {"settings/unknown", "device.open is HEDDLE_EINVAL for a key that the plugin does not know",
           KIT_STAGE_INSTANCE, KIT_OPENS | KIT_REFUSES, 30, unknown, NULL},
          {"settings/device", "a setting of one device takes its default, and no value that its description excludes",
           KIT_STAGE_INSTANCE, KIT_OPENS | KIT_REFUSES, 60, of_device, NULL},
          {"settings/values", "the plugin checks every value itself", KIT_STAGE_DEVICE, KIT_REFUSES, 60, config_values,
           NULL});
