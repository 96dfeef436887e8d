/* tools/devices.c: heddle devices: what is here, which of it is used by default, and why the rest is not. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "described.h"
#include "session.h"
#include "text.h"

static const option known[] = {
    {"settings", OPTION_FLAG, NULL, offsetof(options, described), "every setting of the plugins, with its default"},
    {"all", OPTION_FLAG, NULL, offsetof(options, all), "more of each device, every plugin file, every setting"},
    {"retry", OPTION_FLAG, NULL, offsetof(options, retry), "tries plugins again that were quarantined"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object with all of it"},
    OPTION_SET,
    OPTION_HELP,
    OPTION_END};

/* Listed also where they are not set. */
static const char *const keys[] = {"devices", "plugins", "plugin_path", "config", "log", "threads", "spin_us"};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

/* The i-th setting: those above, then what else is set; NULL past the end. *other is where to go on. */
static const char *setting_key(heddle_context *ctx, int i, size_t *other) {
  if (i < N_KEYS) return keys[i];
  const char *key;
  bool named;
  do {
    key = heddle_context_setting_key(ctx, (*other)++);
    named = false;
    for (int k = 0; k < N_KEYS && key != NULL; k++) named = named || strcmp(key, keys[k]) == 0;
  } while (named);
  return key;
}

static const struct {
  uint64_t bit;
  const char *word;
} caps[] = {{HEDDLE_CAP_INLINE, "inline"},
            {HEDDLE_CAP_HOST_CORES, "host_cores"},
            {HEDDLE_CAP_UNIFIED, "unified"},
            {HEDDLE_CAP_NONCOHERENT, "noncoherent"},
            {HEDDLE_CAP_WAIT_BEFORE_SIGNAL, "wait_before_signal"},
            {HEDDLE_CAP_VIEWS, "views"},
            {HEDDLE_CAP_IMPORT_UNIFIED, "import_unified"},
            {HEDDLE_CAP_POLLED, "polled"},
            {HEDDLE_CAP_LIBRARIES, "libraries"}};

static heddle_device_info info_of(heddle_context *ctx, size_t i) {
  heddle_device_info info = {.struct_size = sizeof info};
  heddle_device *dev = heddle_context_device(ctx, i);
  if (heddle_device_get_info(dev, &info, NULL) != HEDDLE_OK)
    info = (heddle_device_info){.name = heddle_device_name(dev),
                                .plugin = "",
                                .product = "",
                                .driver = "",
                                .reason = "it cannot be described",
                                .abilities_from = "",
                                .pci = {UINT32_MAX, 0, 0, 0}};
  return info;
}

static bool has_uuid(const heddle_device_info *info) {
  static const uint8_t none[16] = {0};
  return memcmp(info->uuid, none, sizeof none) != 0;
}

static void uuid_text(const heddle_device_info *info, char out[40]) {
  size_t used = 0;
  for (int i = 0; i < 16; i++) {
    bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    used += (size_t)snprintf(out + used, 40 - used, "%s%02x", dash ? "-" : "", info->uuid[i]);
  }
}

static void pci_text(const heddle_device_info *info, char out[40]) {
  snprintf(out, 40, "%04" PRIx32 ":%02" PRIx32 ":%02" PRIx32 ".%" PRIu32, info->pci[0], info->pci[1], info->pci[2],
           info->pci[3]);
}

/* By HEDDLE_ABILITY_*: where they stand, and what was found. */
static const char *const abilities[HEDDLE_ABILITIES] = {"fence_wait", "peer", "import_host"};
static const char *const found[] = {"not tried", "works", "does not work"};

static uint32_t found_of(const heddle_device_info *info, int i) {
  return info->abilities[i] <= HEDDLE_ABILITY_FAILS ? info->abilities[i] : HEDDLE_ABILITY_UNTRIED;
}

/* ---- JSON */

static json_t *device_object(const heddle_device_info *info) {
  char text[40];
  json_t *words = json_array();
  for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
    if (info->caps & caps[i].bit) json_array_append_new(words, json_string(caps[i].word));
  json_t *o = json_pack("{so so so so sb so sI sI sI si si so}", "name", json_words(info->name), "plugin",
                        json_words(info->plugin), "product", json_words(info->product), "driver",
                        json_words(info->driver), "default", info->is_default != 0, "reason", json_words(info->reason),
                        "memory_bytes", (json_int_t)info->memory_bytes, "max_buffer_bytes",
                        (json_int_t)info->max_buffer_bytes, "alignment", (json_int_t)info->alignment, "type",
                        (int)info->type, "compute_units", (int)info->compute_units, "caps", words);
  if (o == NULL) return NULL;
  uuid_text(info, text);
  json_object_set_new(o, "uuid", has_uuid(info) ? json_string(text) : json_null());
  pci_text(info, text);
  json_object_set_new(o, "pci", info->pci[0] != UINT32_MAX ? json_string(text) : json_null());
  json_t *tried = json_object();
  for (int i = 0; i < HEDDLE_ABILITIES; i++)
    json_object_set_new(tried, abilities[i], json_string(found[found_of(info, i)]));
  json_object_set_new(tried, "from", info->abilities_from[0] != '\0' ? json_words(info->abilities_from) : json_null());
  json_object_set_new(o, "abilities", tried);
  return o;
}

static json_t *plugin_object(const heddle_plugin_info *p) {
  return json_pack("{so so so so sb so so s[ii] si}", "name", json_words(p->name), "path", json_words(p->path),
                   "manifest", p->manifest[0] != '\0' ? json_words(p->manifest) : json_null(), "found_by",
                   json_words(p->found_by), "used", p->used != 0, "reason", json_words(p->reason), "build",
                   json_words(p->build), "abi", (int)p->abi_major, (int)p->abi_minor, "devices", (int)p->device_count);
}

/* FAILED where the devices to use were named; without any, there need be none. */
static int status_of_list(heddle_context *ctx) {
  const char *value, *origin;
  return heddle_context_setting(ctx, "devices", &value, &origin, NULL) == HEDDLE_OK ? FAILED : DONE;
}

/* *status: FAILED where the list that was asked for cannot be had. */
static json_t *everything(heddle_context *ctx, int *status) {
  json_t *devices = json_array(), *plugins = json_array(), *settings = json_object(), *list = json_array();
  for (size_t i = 0; i < heddle_context_device_count(ctx); i++) {
    heddle_device_info info = info_of(ctx, i);
    json_array_append_new(devices, device_object(&info));
  }
  for (size_t i = 0; i < heddle_context_plugin_count(ctx); i++) {
    heddle_plugin_info p = {.struct_size = sizeof p};
    if (heddle_context_plugin(ctx, i, &p, NULL) == HEDDLE_OK) json_array_append_new(plugins, plugin_object(&p));
  }
  size_t other = 0;
  const char *key;
  for (int i = 0; (key = setting_key(ctx, i, &other)) != NULL; i++) {
    const char *value, *origin;
    if (heddle_context_setting(ctx, key, &value, &origin, NULL) != HEDDLE_OK) continue;
    json_object_set_new(settings, key, json_pack("{so so}", "value", json_words(value), "from", json_words(origin)));
  }
  heddle_device *used[64];
  const char *origin = "default";
  size_t n = 0;
  heddle_error err = {0};
  json_t *problem = json_null();
  if (heddle_context_select(ctx, NULL, used, 64, &n, &origin, &err) != HEDDLE_OK) {
    problem = json_words(err.text);
    *status = status_of_list(ctx);
  }
  for (size_t i = 0; i < n && i < 64; i++) json_array_append_new(list, json_words(heddle_device_name(used[i])));
  char *left_out = NULL;
  json_t *warnings = json_array();
  if (heddle_context_left_out(ctx, NULL, &left_out, NULL) != HEDDLE_OK) left_out = NULL;
  for (char *line = left_out, *end; line != NULL && *line != '\0'; line = end) {
    end = line + strcspn(line, "\n");
    if (*end != '\0') *end++ = '\0';
    json_array_append_new(warnings, json_words(line));
  }
  heddle_free(left_out);
  if (json_array_size(warnings) == 0) { /* a member that is there only where it says something */
    json_decref(warnings);
    warnings = NULL;
  }
  return json_pack("{so s{so so so} so* so so so}", "devices", devices, "used", "names", list, "from",
                   json_words(origin), "problem", problem, "left_out", warnings, "plugins", plugins, "settings",
                   settings, "version", json_string(heddle_version()));
}

/* ---- text */

static void print_more(const heddle_device_info *info) {
  char text[40];
  print("            plugin %s, driver %s, %" PRIu32 " compute units, alignment %" PRIu64 ", DLPack type %d\n",
        info->plugin, info->driver[0] != '\0' ? info->driver : "-", info->compute_units, info->alignment, info->type);
  uuid_text(info, text);
  print("            UUID %s", has_uuid(info) ? text : "-");
  pci_text(info, text);
  print(", PCI %s", info->pci[0] != UINT32_MAX ? text : "-");
  const char *comma = ", ";
  for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
    if (info->caps & caps[i].bit) print("%s%s", comma, caps[i].word);
  print("\n            ");
  bool tried = info->abilities_from[0] != '\0';
  for (int i = 0; i < HEDDLE_ABILITIES; i++)
    print("%s%s%s%s", i > 0 ? ", " : "", abilities[i], tried ? " " : "", tried ? found[found_of(info, i)] : "");
  print(tried ? ", from %s\n" : ": not tried by heddle check-plugin%s\n", info->abilities_from);
}

static void print_devices(heddle_context *ctx, bool all) {
  for (size_t i = 0; i < heddle_context_device_count(ctx); i++) {
    heddle_device_info info = info_of(ctx, i);
    char memory[32] = "-";
    if (info.memory_bytes != 0) bytes_text(info.memory_bytes, memory);
    print("%-10s  %-32s  %10s  %s%s\n", info.name, info.product, memory,
          info.is_default ? "used by default" : "not by default: ", info.is_default ? "" : info.reason);
    if (all) print_more(&info);
  }
  if (heddle_context_device_count(ctx) == 0) print("no device was found\n");
}

static void print_plugins(heddle_context *ctx, bool all) {
  size_t n = heddle_context_plugin_count(ctx);
  if (all) print("\nplugins, in the order in which they were found:\n");
  for (size_t i = 0; i < n; i++) {
    heddle_plugin_info p = {.struct_size = sizeof p};
    if (heddle_context_plugin(ctx, i, &p, NULL) != HEDDLE_OK) continue;
    if (!all && !p.used) print("not used: %s: %s\n", p.path, p.reason);
    if (!all) continue;
    print("  %s\n    found: %s\n", p.path, p.found_by);
    if (p.manifest[0] != '\0') print("    manifest: %s\n", p.manifest);
    if (p.used)
      print("    used: %s %s, ABI %" PRIu32 ".%" PRIu32 ", %" PRIu32 " device%s\n", p.name, p.build, p.abi_major,
            p.abi_minor, p.device_count, p.device_count == 1 ? "" : "s");
    else print("    not used: %s\n", p.reason);
  }
  if (n == 0) print("%sno plugin was found; HEDDLE_PLUGIN_PATH can add folders\n", all ? "  " : "");
}

static void print_settings(heddle_context *ctx) {
  print("\nsettings:\n");
  size_t other = 0;
  const char *key;
  for (int i = 0; (key = setting_key(ctx, i, &other)) != NULL; i++) {
    const char *value, *origin;
    if (heddle_context_setting(ctx, key, &value, &origin, NULL) == HEDDLE_OK)
      print("  %-16s %s   (from: %s)\n", key, value, origin);
    else print("  %-16s -\n", key);
  }
}

static int print_used(heddle_context *ctx) {
  heddle_device *used[64];
  const char *origin = "default";
  size_t n = 0;
  heddle_error err = {0};
  if (heddle_context_select(ctx, NULL, used, 64, &n, &origin, &err) != HEDDLE_OK) {
    print("\nin use: none: %s\n", err.text);
    return status_of_list(ctx);
  }
  print("\nin use: ");
  for (size_t i = 0; i < n && i < 64; i++) print("%s%s", i == 0 ? "" : ", ", heddle_device_name(used[i]));
  print("   (list from: %s)\n", origin);
  char *left_out = NULL;
  if (heddle_context_left_out(ctx, NULL, &left_out, NULL) != HEDDLE_OK) return DONE;
  for (const char *line = left_out; *line != '\0'; line += *line == '\n') {
    const size_t n = strcspn(line, "\n");
    print("warning: %.*s\n", (int)n, line);
    line += n;
  }
  heddle_free(left_out);
  return DONE;
}

static int devices(const options *o) {
  session s;
  int status = session_context(&s, "devices", o);
  if (status == DONE && o->described) {
    if (o->json) status = print_json("devices", described_json(s.ctx));
    else described_print(s.ctx);
  } else if (status == DONE && o->json) {
    int found = DONE;
    status = print_json("devices", everything(s.ctx, &found));
    if (status == DONE) status = found;
  } else if (status == DONE) {
    print_devices(s.ctx, o->all);
    print_plugins(s.ctx, o->all);
    if (o->all) print_settings(s.ctx);
    status = print_used(s.ctx);
  }
  return session_finish(&s, status);
}

const command devices_command = {
    "devices",
    "what is here, and why what is not is not",
    "Lists the devices that the plugins found, which of them are used by default, and the plugin files\n"
    "that are not used with the reason. The list in use comes from --set devices=LIST, HEDDLE_DEVICES, the\n"
    "configuration file or the default, in this order. The exit status is 1 if a list that was set cannot\n"
    "be had.",
    known,
    false,
    devices};
