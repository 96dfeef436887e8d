/* The group "modules": what load says of code that is none, and what a module without a kernel says. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need_modules(kit *k) {
  if (!k->t.has_module) kit_skip(k, "the plugin has no modules");
}

/* The n-th word of the list of formats; false behind the last. */
static bool format_at(kit *k, uint32_t n, char out[64]) {
  const char *at = k->t.module.formats(k->instance, k->index);
  for (; at != NULL && *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    const size_t length = strcspn(at, ",");
    if (n-- > 0) continue;
    if (length == 0 || length >= 64) kit_fail(k, "module.formats has a word of %zu bytes", length);
    memcpy(out, at, length);
    out[length] = '\0';
    return true;
  }
  return false;
}

static void formats(kit *k) {
  need_modules(k);
  char word[64];
  const char *text = k->t.module.formats(k->instance, k->index);
  if (text == NULL) kit_skip(k, "this device takes no modules");
  kit_text(k, text, 1024, "the text of module.formats");
  if (strcmp(text, k->t.module.formats(k->instance, k->index)) != 0) kit_fail(k, "module.formats gives two answers");
  for (uint32_t i = 0; format_at(k, i, word); i++)
    if (strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_.+-") != strlen(word))
      kit_fail(k, "module.formats has the word '%s'; words are of lower case letters, digits and _ . + -", word);
}

/* Bytes that are no module in any format: none, text, zeros, noise, a header cut off. */
static void garbage(kit *k) {
  need_modules(k);
  static const char elf[] = "\177ELF\2\1\1", spirv[] = "\3\2\43\7\0\0\1\0", text[] = "this is no device code {{{";
  unsigned char noise[600], zeros[64] = {0};
  kit_pattern(noise, sizeof noise, 5);
  const struct {
    const void *data;
    uint64_t bytes;
    const char *name;
  } all[] = {{text, sizeof text, "a sentence"},
             {zeros, sizeof zeros, "zeros"},
             {noise, sizeof noise, "noise"},
             {elf, sizeof elf, "half an ELF header"},
             {spirv, sizeof spirv - 1, "half a SPIR-V header"},
             {text, 0, "nothing"}};
  char word[64], what[160];
  uint32_t tried = 0;
  for (uint32_t f = 0; format_at(k, f, word); f++) {
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++, tried++) {
      heddle_pmodule *m = NULL;
      memset(&k->err, 0, sizeof k->err);
      snprintf(what, sizeof what, "module.load of %s as %s", all[i].name, word);
      const heddle_status s = k->t.module.load(k->dev, word, all[i].data, all[i].bytes, &m, &k->err);
      if (s == HEDDLE_OK) {
        heddle_pkernel *kernel = NULL;
        heddle_pkernel_info info = {.struct_size = sizeof info};
        if (k->t.module.kernel_get(m, "no_such_kernel", &kernel, &info, &k->err) == HEDDLE_OK)
          kit_fail(k, "%s succeeded, and it has a kernel 'no_such_kernel'", what);
        k->t.module.unload(m); /* an empty program compiles in some languages */
        continue;
      }
      if (s == HEDDLE_EDEVICE) kit_fail(k, "%s lost the device: %.300s", what, k->err.text);
      if (m != NULL) kit_fail(k, "%s failed and left a module", what);
      kit_text(k, k->err.text, sizeof k->err.text, "the text of a failed module.load");
      if (k->err.text[0] == '\0') kit_fail(k, "%s failed without a word", what);
    }
  }
  kit_ok(k, k->t.device.health(k->dev, &k->err), "device.health after modules that are none");
  if (tried == 0) kit_skip(k, "this device takes no modules");
}

static void unknown(kit *k) {
  need_modules(k);
  heddle_pmodule *m = NULL;
  char word[64];
  if (!format_at(k, 0, word)) kit_skip(k, "this device takes no modules");
  memset(&k->err, 0, sizeof k->err);
  const heddle_status s = k->t.module.load(k->dev, "no-such-format", "x", 1, &m, &k->err);
  if (s == HEDDLE_OK) kit_fail(k, "module.load took the format 'no-such-format'");
  kit_text(k, k->err.text, sizeof k->err.text, "the text of a failed module.load");
  k->t.module.unload(NULL);
}

/* Code that each compiler of such a format takes. */
static void absent(kit *k) {
  static const struct {
    const char *format, *text;
  } sources[] = {{"opencl-c", "__kernel void kit_one(__global float *x) { x[get_global_id(0)] = 1; }"},
                 {"ptx", ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry kit_one()\n{\nret;\n}\n"}};
  need_modules(k);
  char word[64];
  uint32_t loaded = 0;
  for (uint32_t f = 0; format_at(k, f, word); f++) {
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
      heddle_pmodule *m = NULL;
      heddle_pkernel *kernel = NULL;
      heddle_pkernel_info info = {.struct_size = sizeof info};
      if (strcmp(word, sources[i].format) != 0) continue;
      if (k->t.module.load(k->dev, word, sources[i].text, strlen(sources[i].text), &m, &k->err) != HEDDLE_OK) continue;
      loaded++;
      memset(&k->err, 0, sizeof k->err);
      kit_fails(k, k->t.module.kernel_get(m, "kit_two", &kernel, &info, &k->err), HEDDLE_ENOTFOUND, HEDDLE_ENOTFOUND,
                "module.kernel_get of a kernel that is not there");
      kit_ok(k, k->t.module.kernel_get(m, "kit_one", &kernel, &info, &k->err),
             "module.kernel_get of a kernel that is there");
      k->t.module.unload(m);
    }
  }
  if (loaded == 0) kit_skip(k, "the kit has no module in a format of this plugin's");
}

KIT_GROUP(kit_modules, "modules",
          {"modules/formats", "formats is a comma list of words that lives as long as the plugin", KIT_STAGE_INSTANCE,
           0, 0, formats, NULL},
          {"modules/garbage", "load of what is no module fails with words and leaves the device usable",
           KIT_STAGE_DEVICE, 0, 60, garbage, NULL},
          {"modules/unknown", "load refuses a format that it did not name, and unload takes NULL", KIT_STAGE_DEVICE, 0,
           0, unknown, NULL},
          {"modules/absent", "a kernel that is not in its module is HEDDLE_ENOTFOUND", KIT_STAGE_DEVICE, 0, 60, absent,
           NULL});
