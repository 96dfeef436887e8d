/* tools/library.c: compiled libraries, as heddle info shows them. */
#include "library.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "objects.h"
#include "signature.h"
#include "text.h"

bool library_is(const char *path) {
  char head[4] = "";
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  size_t n = fread(head, 1, sizeof head, file);
  fclose(file);
  return (n == sizeof head && memcmp(head, "\177ELF", 4) == 0) || signature_says(path, HEDDLE_SIGNATURE_LIBRARY);
}

heddle_status library_open(const char *path, heddle_context **ctx, heddle_module **out, heddle_error *err) {
  const heddle_setting none = {"plugins", "off"};
  heddle_status s = heddle_context_create(&none, 1, NULL, NULL, ctx, err);
  return s == HEDDLE_OK ? heddle_module_load(*ctx, path, out, err) : s;
}

/* The i-th module inside of it, false past the end. */
static bool import_of(const heddle_module *library, uint32_t i, heddle_import_info *out) {
  *out = (heddle_import_info){.struct_size = sizeof *out};
  return heddle_module_import(library, i, out, NULL) == HEDDLE_OK;
}

uint32_t library_models(const heddle_module *library) {
  uint32_t n = 0;
  heddle_import_info m;
  for (uint32_t i = 0; import_of(library, i, &m); i++) n += m.is_model;
  return n;
}

bool library_has(const heddle_module *library, const char *function) {
  const char *name;
  for (uint32_t i = 0; (name = heddle_module_function(library, i)) != NULL; i++)
    if (strcmp(name, function) == 0) return true;
  return false;
}

void library_print(const heddle_module *library, bool all) {
  heddle_module_info info = {.struct_size = sizeof info};
  heddle_import_info m;
  if (library == NULL || heddle_module_get_info(library, &info, NULL) != HEDDLE_OK) return;
  print("library    %s: %s, %" PRIu32 " functions\n", objects_source(info.path), info.abi, info.n_functions);
  if (strcmp(info.abi, "unknown") == 0)
    print("note       nothing in it says that TVM compiled it%s\n",
          info.n_functions > 0 ? "; its functions are called as those of v0.3 to v0.20" : "");
  for (uint32_t i = 0; i < rows_shown(info.n_functions, all); i++)
    print("function   %s\n", heddle_module_function(library, i));
  rows_left_out(info.n_functions, all);
  for (uint32_t i = 0; import_of(library, i, &m); i++) {
    char bytes[32];
    if (m.is_model) {
      print("holds      model '%s' (%s)\n", m.name, m.kind);
      continue;
    }
    bytes_text(m.bytes, bytes);
    print("import     %s%s%s, %s, %" PRIu32 " kernels", m.kind, m.format[0] != '\0' ? " " : "", m.format, bytes,
          m.n_kernels);
    for (uint32_t k = 0; k < m.n_kernels; k++) print("%s%s", k == 0 ? ": " : ", ", heddle_module_kernel(library, i, k));
    print("\n");
  }
}

json_t *library_object(const heddle_module *library) {
  heddle_module_info info = {.struct_size = sizeof info};
  heddle_import_info m;
  if (library == NULL || heddle_module_get_info(library, &info, NULL) != HEDDLE_OK) return json_null();
  json_t *functions = json_array(), *imports = json_array(), *models = json_array();
  for (uint32_t i = 0; i < info.n_functions; i++)
    json_array_append_new(functions, json_words(heddle_module_function(library, i)));
  for (uint32_t i = 0; import_of(library, i, &m); i++) {
    json_t *kernels = json_array();
    for (uint32_t k = 0; k < m.n_kernels; k++)
      json_array_append_new(kernels, json_words(heddle_module_kernel(library, i, k)));
    if (m.is_model) json_array_append_new(models, json_words(m.name));
    json_array_append_new(imports, json_pack("{so so sI so}", "kind", json_words(m.kind), "format",
                                             json_words(m.format), "bytes", (json_int_t)m.bytes, "kernels", kernels));
  }
  return json_pack("{so ss so so so}", "file", json_words(objects_source(info.path)), "abi", info.abi, "functions",
                   functions, "imports", imports, "models", models);
}

const char *device_type_text(int32_t type, char scratch[24]) {
  switch (type) {
  case HEDDLE_DEVICE_CPU: return "cpu";
  case HEDDLE_DEVICE_CUDA: return "cuda";
  case HEDDLE_DEVICE_OPENCL: return "opencl";
  case HEDDLE_DEVICE_VULKAN: return "vulkan";
  case HEDDLE_DEVICE_ROCM: return "rocm";
  default: snprintf(scratch, 24, "type %" PRId32, type); return scratch;
  }
}
