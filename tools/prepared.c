/* tools/prepared.c: prepared parts of a package: a block for each list of devices. */
#include "prepared.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heddle/device.h"
#include "heddle/pack.h"
#include "text.h"

static heddle_status read_text(const heddle_params *params, heddle_context *ctx, json_t **out, heddle_error *err) {
  char *text = NULL;
  json_decref(*out);
  *out = NULL;
  heddle_status s = heddle_params_prepared(params, ctx, &text, err);
  if (s == HEDDLE_OK) *out = json_loads(text, JSON_DECODE_ANY, NULL);
  heddle_free(text);
  return s == HEDDLE_OK && *out == NULL ? HEDDLE_ENOMEM : s;
}

heddle_status prepared_read(const heddle_params *params, json_t **out, heddle_error *err) {
  heddle_context *ctx = NULL;
  *out = NULL;
  heddle_status s = params != NULL ? read_text(params, NULL, out, err) : HEDDLE_OK;
  if (*out == NULL) *out = json_null();
  if (s != HEDDLE_OK || json_is_null(*out)) return s; /* plugins are loaded where there is something to compare */
  s = heddle_context_create(NULL, 0, NULL, NULL, &ctx, err);
  if (s == HEDDLE_OK) s = read_text(params, ctx, out, err);
  heddle_context_release(ctx);
  return s;
}

static const char *text_of(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static void print_files(const json_t *files, bool all) {
  char bytes[32];
  const uint32_t n = (uint32_t)json_array_size(files);
  for (uint32_t i = 0; i < rows_shown(n, all); i++) {
    const json_t *f = json_array_get(files, i);
    bytes_text((uint64_t)json_integer_value(json_object_get(f, "bytes")), bytes);
    print("  file     %s: %s, %s\n", text_of(f, "name"), text_of(f, "kind"), bytes);
  }
  rows_left_out(n, all);
}

void prepared_print(const json_t *prepared, bool all) {
  const json_t *targets = json_object_get(prepared, "targets");
  const char *why = text_of(prepared, "why");
  if (json_is_null(prepared)) return;
  if (json_array_size(targets) == 0) print("prepared   ignored: %s\n", why != NULL ? why : "there is nothing");
  for (size_t i = 0; i < json_array_size(targets); i++) {
    const json_t *t = json_array_get(targets, i), *devices = json_object_get(t, "devices");
    const char *not = text_of(t, "why");
    char bytes[32];
    bytes_text((uint64_t)json_integer_value(json_object_get(t, "bytes")), bytes);
    print("prepared   for %s by Heddle %s, %s: %s%s\n", text_of(t, "for"), text_of(prepared, "heddle"), bytes,
          not != NULL ? "ignored: " : "fits", not != NULL ? not : "");
    for (size_t k = 0; k < json_array_size(devices); k++) {
      const json_t *d = json_array_get(devices, k);
      const char *other = text_of(d, "why");
      print("  device   %s: %s, %s%s%s\n", text_of(d, "name"), text_of(d, "about"), text_of(d, "driver"),
            other != NULL ? "; " : "", other != NULL ? other : "");
    }
    print_files(json_object_get(t, "files"), all);
  }
}
