/* conformance/kit_stage.c: takes a case's process as far as the case wants it: the file opened, the entry asked, an
 * instance and its device opened. Only what the next stage cannot do without is looked at here; the rest is for cases. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conformance/kit_side.h"

static bool no(kit *k, const char *format, ...) {
  va_list args;
  va_start(args, format);
  k->err.status = HEDDLE_EABI;
  if (vsnprintf(k->err.text, sizeof k->err.text, format, args) < 0) k->err.text[0] = '\0';
  va_end(args);
  return false;
}

/* A failed call with its words, which stay within the text. */
static bool said(kit *k, const char *what, heddle_status status) {
  char words[sizeof k->err.text];
  memcpy(words, k->err.text, sizeof words);
  words[sizeof words - 1] = '\0';
  return no(k, "%s: %s, with the words \"%.800s\"", what, kit_status_name(status), words);
}

/* The plugin whose settings the entry is given: that which the file is named after. */
static void name_by_file(kit *k) {
  static const char prefix[] = "libheddle_plugin_", suffix[] = ".so";
  const char *slash = strrchr(k->file, '/'), *file = slash != NULL ? slash + 1 : k->file;
  k->side->settings_of[0] = '\0';
  if (strncmp(file, prefix, sizeof prefix - 1) != 0) return;
  file += sizeof prefix - 1;
  size_t n = strlen(file);
  if (n < sizeof suffix || strcmp(file + n - sizeof suffix + 1, suffix) != 0) return;
  snprintf(k->side->settings_of, sizeof k->side->settings_of, "%.*s", (int)(n - sizeof suffix + 1), file);
}

bool kit_stage_library(kit *k) {
  name_by_file(k);
  kit_step(k, "dlopen of the file");
  k->side->library = dlopen(k->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (k->side->library == NULL) {
    const char *words = dlerror();
    return no(k, "the file cannot be loaded: %s", words != NULL ? words : "no reason is given");
  }
  void *symbol = dlsym(k->side->library, "heddle_plugin_entry");
  if (symbol == NULL) return no(k, "the file does not export heddle_plugin_entry");
  memcpy(&k->side->entry, &symbol, sizeof symbol); /* POSIX promises that this works */
  return true;
}

bool kit_stage_entry(kit *k) {
  kit_step(k, "");
  atomic_store(&k->side->page->in, kit_call_entry());
  k->theirs = k->side->entry(&k->host, &k->err);
  atomic_store(&k->side->page->in, 0);
  atomic_store(&k->side->page->last, kit_call_entry());
  if (k->theirs == NULL) return said(k, "the entry refused the kit", HEDDLE_EABI);
  char why[CONTRACT_TEXT];
  if (!contract_take(k->theirs, &k->root, &k->t, why)) return no(k, "%s", why);
  if (contract_text_fault(k->root.name, sizeof k->side->settings_of) == NULL)
    strcpy(k->side->settings_of, k->root.name);
  kit_calls_watch(k);
  return true;
}

bool kit_stage_instance(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_complete(&k->root, &k->t, why)) return no(k, "%s (load/functions)", why);
  heddle_status s = k->root.open_instance(&k->host, &k->instance, &k->err);
  if (s != HEDDLE_OK) return said(k, "open_instance", s);
  if (k->instance == NULL) return no(k, "open_instance said yes and gave nothing");
  s = k->root.device_count(k->instance, &k->n_devices, &k->err);
  if (s != HEDDLE_OK) return said(k, "device_count", s);
  if (k->n_devices == 0) return no(k, "the plugin has no device here");
  if (k->index >= k->n_devices)
    return no(k, "there is no device %u: the plugin has %u", (unsigned)k->index, (unsigned)k->n_devices);
  k->desc = (heddle_pdevice_desc){.struct_size = sizeof k->desc};
  s = k->root.device_describe(k->instance, k->index, &k->desc, &k->err);
  if (s != HEDDLE_OK) return said(k, "device_describe", s);
  k->desc.name[sizeof k->desc.name - 1] = '\0'; /* of the kit's copy: root/texts looks at the plugin's own */
  k->desc.driver[sizeof k->desc.driver - 1] = '\0';
  return true;
}

/* A plugin that is being written, such as null: it refuses streams and memory alike. */
static bool does_nothing(kit *k) {
  const heddle_pmemory_desc desc = {.struct_size = sizeof desc, .kind = HEDDLE_MEMORY_DEVICE, .bytes = 64, .align = 1};
  heddle_pbuffer *buffer = NULL;
  heddle_pstream *stream = NULL;
  bool nothing = k->t.stream.create(k->dev, HEDDLE_STREAM_COMPUTE, 0, &stream, &k->err) == HEDDLE_EUNSUPPORTED;
  if (stream != NULL && !nothing) k->t.stream.close(stream);
  if (!nothing) return false;
  nothing = k->t.memory.alloc(k->dev, &desc, &buffer, &k->err) == HEDDLE_EUNSUPPORTED;
  if (buffer != NULL && !nothing) k->t.memory.free(k->dev, buffer);
  return nothing;
}

bool kit_stage_device(kit *k) {
  heddle_pdevice_options options = {.struct_size = sizeof options, .cookie = k->index + 1};
  heddle_status s = k->t.device.open(k->instance, k->index, &options, &k->dev, &k->err);
  if (s != HEDDLE_OK) return said(k, "device.open", s);
  if (k->dev == NULL) return no(k, "device.open said yes and gave nothing");
  kit_calls_stand_in(k);
  return true;
}

void kit_stages(kit *k, uint32_t stage) {
  bool there = true;
  if (stage >= KIT_STAGE_ENTRY) there = kit_stage_library(k) && kit_stage_entry(k);
  if (there && stage >= KIT_STAGE_INSTANCE) there = kit_stage_instance(k);
  if (there && stage >= KIT_STAGE_DEVICE) there = kit_stage_device(k);
  if (!there) kit_say_and_end(KIT_SAYS_STAGE, k->err.text);
  if (stage >= KIT_STAGE_DEVICE && does_nothing(k))
    kit_skip(k, "the device has neither streams nor memory: \"%.800s\"", k->err.text);
}
