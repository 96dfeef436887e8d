/* core/loader.c: from a candidate file to a plugin in use: looks at the file, opens it, negotiates, takes its tables,
 * starts an instance and lists its devices. What goes wrong becomes the candidate's reason. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"
#include "core/layers/layers.h"
#include "core/parts.h"
#include "core/probe.h"
#include "core/registry.h"

#if HEDDLE_HAS_DLOPEN
#include <dlfcn.h>
#endif

enum { MAX_DEVICES = 1024, FROZEN_BYTES = 32 };

heddle_status heddle__plugin_refuse(heddle__plugin *plugin, heddle_error *err, const char *format, ...) {
  heddle_error words; /* formats, and makes one line of it */
  char text[sizeof words.text];
  va_list args;
  va_start(args, format);
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  va_end(args);
  heddle__fail(&words, HEDDLE_EABI, "%s", text);
  heddle__free(plugin->reason);
  plugin->reason = heddle__strdup(words.text);
  if (plugin->reason == NULL) return heddle__no_memory(err, "a plugin's reason");
  heddle__logf(&plugin->ctx->log, HEDDLE_LOG_INFO, "loader", "not used: %s: %s", plugin->path, words.text);
  return HEDDLE_OK;
}

_Static_assert(sizeof((heddle__plugin *)NULL)->name == CONTRACT_NAME, "a name that the contract allows fits");

/* Looks at the frozen first bytes only, then takes the rest; HEDDLE_EABI with why. */
static heddle_status negotiate(heddle__plugin *p, const heddle_plugin *theirs, heddle_error *err) {
  char why[CONTRACT_TEXT];
  const bool is_known = contract_frozen(theirs, why);
  if (theirs->struct_size >= FROZEN_BYTES)
    p->root = (heddle_plugin){.abi_major = theirs->abi_major, .abi_minor = theirs->abi_minor, .build = theirs->build};
  if (!is_known) return heddle__fail(err, HEDDLE_EABI, "%s", why);
  const uint64_t sanitizers = HEDDLE_FEATURE_ASAN | HEDDLE_FEATURE_TSAN | HEDDLE_FEATURE_MSAN;
  if ((theirs->features & sanitizers & ~heddle__elf_sanitizers()) != 0)
    return heddle__fail(err, HEDDLE_EABI, "it says that it was built with a sanitizer that this process lacks");
  if (!contract_name(theirs->name, why)) return heddle__fail(err, HEDDLE_EABI, "%s", why);
  if (heddle__is_group(theirs->name, strlen(theirs->name)))
    return heddle__fail(err, HEDDLE_EABI, "its name, '%s', means several devices in a list", theirs->name);
  memcpy(p->name, theirs->name, strlen(theirs->name) + 1);
  if (p->manifest != NULL && strcmp(p->said, p->name) != 0)
    return heddle__fail(err, HEDDLE_EABI, "it is plugin '%s', and its manifest %s says '%s'", p->name, p->manifest,
                        p->said);
  for (size_t i = 0; i < p->ctx->plugins.count; i++) {
    const heddle__plugin *other = p->ctx->plugins.data[i];
    if (atomic_load(&other->seen) && other->reason == NULL && strcmp(other->name, p->name) == 0)
      return heddle__fail(err, HEDDLE_EABI, "a plugin '%s' was found first: %s", p->name, other->path);
  }
  if (!contract_take(theirs, &p->root, &p->tables, why) || !contract_sizes(&p->root, why) ||
      !contract_complete(&p->root, &p->tables, why))
    return heddle__fail(err, HEDDLE_EABI, "plugin %s: %s", p->name, why);
  heddle_status s = heddle__described_take(p, err);
  return s == HEDDLE_OK ? s : heddle__prefix(err, s, "plugin %s: ", p->name);
}

void heddle__file_name(const heddle__plugin *p, char *out) {
  if (p->manifest != NULL) {
    memcpy(out, p->said, sizeof p->said);
    return;
  }
  static const char prefix[] = "libheddle_plugin_", suffix[] = ".so";
  const char *slash = strrchr(p->path, '/'), *file = slash != NULL ? slash + 1 : p->path;
  out[0] = '\0';
  if (strncmp(file, prefix, sizeof prefix - 1) != 0) return;
  file += sizeof prefix - 1;
  size_t n = strlen(file), end = sizeof suffix - 1;
  if (n <= end || n - end >= sizeof p->name || strcmp(file + n - end, suffix) != 0) return;
  memcpy(out, file, n - end);
  out[n - end] = '\0';
}

/* So that who tries a plugin knows how far it came (core/probe/helper). */
static void step(const heddle__plugin *p, const char *call) {
  heddle__logf(&p->ctx->log, HEDDLE_LOG_TRACE, "loader", "calls %s of %s", call, p->path);
}

/* The entry of a plugin in a file; NULL with why. The library stays for the life of the process. */
static heddle_plugin_entry_fn open_file(const heddle__plugin *p, heddle_error *err) {
#if HEDDLE_HAS_DLOPEN
  heddle_plugin_entry_fn entry;
  if (heddle__elf_check(p->real, err) != HEDDLE_OK) return NULL;
  step(p, "its constructors");
  void *library = dlopen(p->real, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) {
    const char *words = dlerror();
    heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s", words != NULL ? words : "no reason given");
    return NULL;
  }
  void *symbol = dlsym(library, "heddle_plugin_entry");
  if (symbol == NULL) {
    heddle__fail(err, HEDDLE_EABI, "it does not export heddle_plugin_entry");
    return NULL;
  }
  memcpy(&entry, &symbol, sizeof entry); /* POSIX promises that this works */
  return entry;
#else
  (void)p;
  heddle__left_out(err, "loader of plugins in files", "HEDDLE_DLOPEN");
  return NULL;
#endif
}

/* The plugin's root table; NULL with why. */
static const heddle_plugin *enter(heddle__plugin *p, heddle_error *err) {
  const heddle_plugin_entry_fn entry = p->entry != NULL ? p->entry : open_file(p, err);
  if (entry == NULL) return NULL;
  heddle_error words = {0, 0, ""};
  heddle__host_init(&p->host, p);
  heddle__file_name(p, p->name); /* until its table says what it is called: the settings are those of that name */
  step(p, "heddle_plugin_entry");
  const heddle_plugin *root = entry(&p->host, &words);
  p->name[0] = '\0';
  words.text[sizeof words.text - 1] = '\0';
  if (root == NULL)
    heddle__fail(err, HEDDLE_EABI, "its entry refused: %s", words.text[0] != '\0' ? words.text : "no reason given");
  return root;
}

/* Plugins of the type HEDDLE_DEVICE_EXT are distinguished by a number of their name. */
static heddle_status check_type(const heddle__plugin *p, const heddle_device *dev, heddle_error *why) {
  for (size_t i = 0; i < p->ctx->plugins.count && heddle__is_own_type(dev->desc.type); i++) {
    const heddle__plugin *other = p->ctx->plugins.data[i];
    if (other == p || !atomic_load(&other->seen) || other->reason != NULL) continue;
    for (uint32_t k = 0; k < other->n_devices; k++)
      if (other->devices[k]->desc.type == dev->desc.type)
        return heddle__fail(why, HEDDLE_EABI,
                            "the device type %d, which its name gives, is that of plugin '%s' (%s): rename one of them",
                            (int)dev->desc.type, other->name, other->path);
  }
  return HEDDLE_OK;
}

static heddle_status list_devices(heddle__plugin *p, heddle_error *why) {
  uint32_t count = 0;
  step(p, "device_count");
  heddle_status s = p->root.device_count(p->instance, &count, why);
  if (s != HEDDLE_OK) return s;
  if (count > MAX_DEVICES)
    return heddle__fail(why, HEDDLE_EABI, "it reports %u devices, over %d", (unsigned)count, MAX_DEVICES);
  step(p, "device_describe");
  p->devices = heddle__alloc(count, sizeof(heddle_device *));
  if (p->devices == NULL) return heddle__no_memory(why, "the list of devices");
  for (uint32_t i = 0; i < count; i++) {
    heddle_device *dev = NULL;
    s = heddle__device_create(p, i, &dev, why);
    if (s != HEDDLE_OK) break;
    p->devices[p->n_devices++] = dev;
    s = check_type(p, dev, why);
    if (s != HEDDLE_OK) break;
  }
  return s;
}

/* The plugin is refused; but memory that is out is a failure of the whole. */
static heddle_status give_up(heddle__plugin *p, heddle_status s, const heddle_error *why, heddle_error *err) {
  const char *text = why->text[0] != '\0' ? why->text : heddle_status_text(s);
  if (s == HEDDLE_ENOMEM) return heddle__fail(err, s, "%s: %.900s", p->path, text);
  if (p->name[0] == '\0' || strncmp(text, "plugin ", 7) == 0) return heddle__plugin_refuse(p, err, "%s", text);
  return heddle__plugin_refuse(p, err, "plugin %s: %.900s", p->name, text);
}

/* Ends an instance whose devices are not open; the plugin can be loaded again. It is used with all of its devices or not at
 * all: indices are positions. */
static void take_back(heddle__plugin *p) {
  while (p->n_devices > 0) heddle__device_release(p->devices[--p->n_devices]);
  step(p, "close_instance");
  p->root.close_instance(p->instance);
  p->instance = NULL;
  heddle__layers_release(p->layers);
  p->layers = NULL;
  heddle__free(p->devices);
  p->devices = NULL;
}

heddle_status heddle__plugin_load(heddle__plugin *p, heddle_error *err) {
  if (p->reason != NULL) return HEDDLE_OK;
  heddle_error why = {0, 0, ""};
  heddle_status s = HEDDLE_OK;
#if HEDDLE_HAS_DLOPEN /* what is linked in is the program's */
  if (p->entry == NULL) s = heddle__plugin_trust(p, err);
  if (s == HEDDLE_OK && p->entry == NULL && p->reason == NULL) s = heddle__privileged_check(p, err);
  if (s == HEDDLE_OK && p->entry == NULL && p->reason == NULL) s = heddle__probe_before(p, err);
#endif
  if (s != HEDDLE_OK || p->reason != NULL) return s;
  const heddle_plugin *root = enter(p, &why);
  s = root == NULL ? HEDDLE_EABI : negotiate(p, root, &why);
  if (s != HEDDLE_OK) return give_up(p, why.status, &why, err);
  p->use = &p->tables;
  s = heddle__settings_common(p, &why);
  if (s != HEDDLE_OK) return give_up(p, s, &why, err);
  step(p, "open_instance");
  s = p->root.open_instance(&p->host, &p->instance, &why);
  if (s == HEDDLE_OK && p->instance == NULL)
    s = heddle__fail(&why, HEDDLE_EABI, "open_instance said yes and gave nothing");
  if (s != HEDDLE_OK) {
    p->instance = NULL;
    return give_up(p, s, &why, err);
  }
  s = heddle__layers_create(p, err);
  if (s != HEDDLE_OK) {
    take_back(p);
    return s;
  }
  s = list_devices(p, &why);
  if (HEDDLE_HAS_DLOPEN && s == HEDDLE_OK && p->entry == NULL) s = heddle__probe_after(p, &why);
  if (s == HEDDLE_OK) {
    heddle__settings_check(p);
    heddle__logf(&p->ctx->log, HEDDLE_LOG_INFO, "loader", "uses %s: plugin %s, ABI %u.%u, %u devices (%s)", p->path,
                 p->name, p->root.abi_major, p->root.abi_minor, (unsigned)p->n_devices, p->found_by);
    return HEDDLE_OK;
  }
  take_back(p);
  return give_up(p, s, &why, err);
}

void heddle__plugin_close(heddle__plugin *p) {
  if (p == NULL) return;
  if (p->instance != NULL) step(p, "close_instance");
  if (p->instance != NULL) p->root.close_instance(p->instance);
  heddle__layers_release(p->layers);
  heddle__settings_forget(p);
  heddle__described_forget(p);
  free(p->real);
  heddle__free(p->drivers);
  heddle__free(p->abilities);
  heddle__free(p->manifest);
  heddle__free(p->devices);
  heddle__free(p->reason);
  heddle__free(p->path);
  heddle__free(p);
}
