/* modules/tvm/api_module.c: TVM's C API, modules: load, import, functions by name. */
#include <stdio.h>
#include <string.h>

#include "modules/tvm/api.h"
#include "modules/tvm/convert.h"

heddle_object *heddle__api_module(const char *caller, void *handle) {
  heddle_object *o = handle;
  if (o != NULL && o->mark == HEDDLE__OBJECT_MARK) return o;
  heddle__api_refuse("%s: the handle is %s", caller, o == NULL ? "NULL" : "no module");
  return NULL;
}

/* "so" for shared libraries, however they are called. */
static const char *format_of(const char *path, const char *format) {
  const char *dot = strrchr(path, '.');
  if (format == NULL || format[0] == '\0') format = dot != NULL && strchr(dot, '/') == NULL ? dot + 1 : "";
  bool is_library = strcmp(format, "dll") == 0 || strcmp(format, "dylib") == 0 || strcmp(format, "dso") == 0;
  return is_library ? "so" : format;
}

/* A loader by its name of v0.7, or as it was called before. */
static heddle_function *loader(const char *format) {
  static const char *const names[] = {"runtime.module.loadfile_%s", "module.loadfile_%s"};
  heddle_function *f = NULL;
  for (int i = 0; i < 2 && f == NULL; i++) {
    char name[200];
    if ((size_t)snprintf(name, sizeof name, names[i], format) < sizeof name) f = heddle__registry_find(name);
  }
  return f;
}

heddle_object *heddle__api_load(const char *path, const char *format) {
  format = format_of(path, format);
  heddle_function *f = loader(format);
  if (f == NULL) {
    heddle__api_refuse(
        "%.300s: there is no loader for files of format '%.60s'; shared libraries are loaded, and what a "
        "function 'runtime.module.loadfile_%.60s' that is registered makes of a file",
        path, format, format);
    return NULL;
  }
  heddle__word args[2] = {{.s = path}, {.s = format}}, ret;
  int32_t codes[2] = {PACKED_STRING, PACKED_STRING}, code;
  int rc = heddle__function_call(f, args, codes, 2, &ret, &code);
  heddle__function_release(f);
  if (rc != 0) return NULL;
  if (code == PACKED_MODULE) return ret.p;
  heddle__result_drop(ret, code);
  heddle__api_refuse("%.300s: the loader of format '%.60s' returned no module", path, format);
  return NULL;
}

int TVMModLoadFromFile(const char *file_name, const char *format, TVMModuleHandle *out) {
  if (file_name == NULL || out == NULL) return heddle__api_refuse("TVMModLoadFromFile: the name or out is NULL");
  *out = heddle__api_load(file_name, format);
  return *out != NULL ? 0 : -1;
}

int TVMModImport(TVMModuleHandle mod, TVMModuleHandle dep) {
  heddle_object *o = heddle__api_module("TVMModImport", mod), *of = heddle__api_module("TVMModImport", dep);
  return o != NULL && of != NULL && heddle__object_add(o, of) ? 0 : -1;
}

int TVMModGetFunction(TVMModuleHandle mod, const char *func_name, int query_imports, TVMFunctionHandle *out) {
  heddle_object *o = heddle__api_module("TVMModGetFunction", mod);
  heddle_function *f = NULL;
  if (o == NULL) return -1;
  if (func_name == NULL || out == NULL) return heddle__api_refuse("TVMModGetFunction: the name or out is NULL");
  int rc = heddle__object_find(o, func_name, query_imports != 0, &f);
  *out = f;
  return rc;
}

int TVMModFree(TVMModuleHandle mod) {
  heddle_object *o = mod != NULL ? heddle__api_module("TVMModFree", mod) : NULL;
  heddle__object_release(o);
  return mod == NULL || o != NULL ? 0 : -1;
}
