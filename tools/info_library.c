/* tools/info_library.c: the part of heddle info that is about a compiled library. */
#include "info_library.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

heddle_status info_library_open(const char *path, heddle_context **ctx, heddle_module **out, heddle_error *err) {
  const heddle_setting none = {"plugins", "off"};
  heddle_status s = heddle_context_create(&none, 1, NULL, NULL, ctx, err);
  return s == HEDDLE_OK ? heddle_module_load(*ctx, path, out, err) : s;
}

bool info_is_library(const char *path) {
  char head[4] = "";
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  size_t n = fread(head, 1, sizeof head, file);
  fclose(file);
  return n == sizeof head && memcmp(head, "\177ELF", 4) == 0;
}

void info_library_print(const heddle_module *library) {
  heddle_module_info info = {.struct_size = sizeof info};
  if (library == NULL || heddle_module_get_info(library, &info, NULL) != HEDDLE_OK) return;
  printf("library    %s: %s, %" PRIu32 " functions\n", info.path, info.abi, info.n_functions);
  for (uint32_t i = 0; i < info.n_functions; i++) printf("function   %s\n", heddle_module_function(library, i));
  for (uint32_t i = 0; i < info.n_imports; i++) {
    heddle_import_info m = {.struct_size = sizeof m};
    char bytes[32];
    if (heddle_module_import(library, i, &m, NULL) != HEDDLE_OK) continue;
    bytes_text(m.bytes, bytes);
    printf("import     %s%s%s, %s, %" PRIu32 " kernels", m.kind, m.format[0] != '\0' ? " " : "", m.format, bytes,
           m.n_kernels);
    for (uint32_t k = 0; k < m.n_kernels; k++)
      printf("%s%s", k == 0 ? ": " : ", ", heddle_module_kernel(library, i, k));
    printf("\n");
  }
}

json_t *info_library_object(const heddle_module *library) {
  heddle_module_info info = {.struct_size = sizeof info};
  if (library == NULL || heddle_module_get_info(library, &info, NULL) != HEDDLE_OK) return json_null();
  json_t *functions = json_array(), *imports = json_array();
  for (uint32_t i = 0; i < info.n_functions; i++)
    json_array_append_new(functions, json_words(heddle_module_function(library, i)));
  for (uint32_t i = 0; i < info.n_imports; i++) {
    heddle_import_info m = {.struct_size = sizeof m};
    if (heddle_module_import(library, i, &m, NULL) != HEDDLE_OK) continue;
    json_t *kernels = json_array();
    for (uint32_t k = 0; k < m.n_kernels; k++)
      json_array_append_new(kernels, json_words(heddle_module_kernel(library, i, k)));
    json_array_append_new(imports, json_pack("{so so sI so}", "kind", json_words(m.kind), "format",
                                             json_words(m.format), "bytes", (json_int_t)m.bytes, "kernels", kernels));
  }
  return json_pack("{so ss so so}", "file", json_words(info.path), "abi", info.abi, "functions", functions, "imports",
                   imports);
}
