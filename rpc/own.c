/* rpc/own.c: the functions of a server that clients find by name: files of the session's folder, modules that are loaded
 * from it, and functions of modules. Files have plain names: a client reaches no other folder. */
#include "rpc/session.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tvm/runtime/c_runtime_api.h>
#include <unistd.h>

#include "heddle/pack.h"

enum { NAME_ROOM = 256, PATH_ROOM = 4096 };

typedef rpc_outcome (*own_fn)(rpc_session *s, const rpc_value *args);

/* ---- files */

/* A plain file name of the session's folder; false with words. */
static bool is_plain(rpc_session *s, const char *name) {
  if (name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < NAME_ROOM - 8) return true;
  rpc_fail(s, "'%.200s' is no plain file name: files of a session have names without '/' that do not begin with '.'",
           name);
  return false;
}

static rpc_outcome fail_file(rpc_session *s, const char *what, const char *name) {
  return rpc_fail(s, "%s %.200s: %s", what, name, strerror(errno));
}

static rpc_outcome upload(rpc_session *s, const rpc_value *a) {
  const char *name = a[0].of.text.data;
  const uint64_t bytes = a[1].of.text.bytes;
  if (!is_plain(s, name)) return RPC_FAILED;
  if (bytes > s->limits.memory - s->written)
    return rpc_fail(s, "cannot write %.200s: the session's files would be over its limit of %llu bytes", name,
                    (unsigned long long)s->limits.memory);
  FILE *f = fopen(name, "wb");
  if (f == NULL) return fail_file(s, "cannot write", name);
  s->written += bytes;
  bool good = bytes == 0 || fwrite(a[1].of.text.data, 1, (size_t)bytes, f) == bytes;
  if (fclose(f) != 0 || !good) return fail_file(s, "cannot write", name);
  return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_NULL});
}

/* A regular file as a whole; freed with free. NULL with words. */
static void *read_file(rpc_session *s, const char *name, size_t *bytes) {
  struct stat about;
  FILE *f = fopen(name, "rb");
  void *data = NULL;
  bool good = f != NULL && fstat(fileno(f), &about) == 0 && S_ISREG(about.st_mode);
  if (good && (uint64_t)about.st_size > s->limits.packet) {
    rpc_fail(s, "%.200s: a file of %lld bytes is over the limit", name, (long long)about.st_size);
    fclose(f);
    return NULL;
  }
  if (good) data = malloc((size_t)about.st_size + 1);
  good = data != NULL && fread(data, 1, (size_t)about.st_size, f) == (size_t)about.st_size;
  if (!good) {
    fail_file(s, "cannot read", name);
    free(data);
    data = NULL;
  }
  if (f != NULL) fclose(f);
  *bytes = good ? (size_t)about.st_size : 0;
  return data;
}

static rpc_outcome give_file(rpc_session *s, const char *name) {
  size_t bytes;
  void *data = read_file(s, name, &bytes);
  if (data == NULL) return RPC_FAILED;
  rpc_outcome out = rpc_give_result(s, (rpc_value){.kind = RPC_KIND_BYTES, .of.text = {data, bytes}});
  free(data);
  return out;
}

static rpc_outcome download(rpc_session *s, const rpc_value *a) {
  return is_plain(s, a[0].of.text.data) ? give_file(s, a[0].of.text.data) : RPC_FAILED;
}

static rpc_outcome remove_file(rpc_session *s, const rpc_value *a) {
  if (!is_plain(s, a[0].of.text.data)) return RPC_FAILED;
  if (unlink(a[0].of.text.data) != 0 && errno != ENOENT) return fail_file(s, "cannot remove", a[0].of.text.data);
  return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_NULL});
}

/* FOLDER/NAME, or the folder alone. */
static bool full_path(rpc_session *s, const char *name, char out[PATH_ROOM]) {
  if (getcwd(out, PATH_ROOM - NAME_ROOM - 1) == NULL) {
    fail_file(s, "the session's folder,", name);
    return false;
  }
  size_t n = strlen(out);
  if (name[0] != '\0') snprintf(out + n, PATH_ROOM - n, "/%.255s", name);
  return true;
}

static rpc_outcome workpath(rpc_session *s, const rpc_value *a) {
  char path[PATH_ROOM];
  const char *name = a[0].of.text.data;
  if (name[0] != '\0' && !is_plain(s, name)) return RPC_FAILED;
  if (!full_path(s, name, path)) return RPC_FAILED;
  return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_STRING, .of.text = {path, strlen(path)}});
}

/* Names, each with a comma after it. The argument is a folder, of which there is one. */
static rpc_outcome listdir(rpc_session *s, const rpc_value *a) {
  byte_buffer names = {0};
  const char *folder = a[0].of.text.data;
  if (folder[0] != '\0' && strcmp(folder, ".") != 0 && strcmp(folder, "/") != 0)
    return rpc_fail(s, "a session has one folder, '.'; there is no '%.200s'", folder);
  DIR *d = opendir(".");
  if (d == NULL) return fail_file(s, "cannot read", ".");
  for (const struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    byte_put(&names, e->d_name, strlen(e->d_name));
    byte_put(&names, ",", 1);
  }
  closedir(d);
  const char *text = names.used > 0 ? (const char *)names.data : "";
  rpc_outcome out = rpc_give_result(s, (rpc_value){.kind = RPC_KIND_STRING, .of.text = {text, names.used}});
  byte_finish(&names);
  return out;
}

/* ---- modules */

static bool ends_in(const char *name, const char *with) {
  size_t n = strlen(name), m = strlen(with);
  return n > m && strcmp(name + n - m, with) == 0;
}

/* The library of a file, which objects are linked to first; false with words. */
static bool linked(rpc_session *s, const char *name, char out[NAME_ROOM]) {
  heddle_error err = {0};
  snprintf(out, NAME_ROOM, "%s", name);
  if (!is_plain(s, name)) return false;
  if (!ends_in(name, ".o") && !ends_in(name, ".tar") && !ends_in(name, ".a")) return true;
  snprintf(out, NAME_ROOM, "%s.so", name);
  const heddle_pack_options options = {.struct_size = sizeof options, .libraries = &name, .n_libraries = 1};
  if (heddle_pack(out, &options, &err) == HEDDLE_OK) return true;
  rpc_fail(s, "%s", err.text);
  return false;
}

static rpc_outcome load_module(rpc_session *s, const rpc_value *a) {
  char name[NAME_ROOM], path[PATH_ROOM];
  TVMModuleHandle module = NULL;
  if (!linked(s, a[0].of.text.data, name) || !full_path(s, name, path)) return RPC_FAILED;
  if (access(path, R_OK) != 0) return fail_file(s, "cannot load", name);
  if (TVMModLoadFromFile(path, "", &module) != 0) return rpc_fail_tvm(s);
  return rpc_give_object(s, RPC_HELD_MODULE, module);
}

static rpc_outcome download_linked(rpc_session *s, const rpc_value *a) {
  char name[NAME_ROOM];
  if (!linked(s, a[0].of.text.data, name)) return RPC_FAILED;
  if (!ends_in(name, ".so")) return rpc_fail(s, "'%.200s' cannot be linked: .o, .a and .tar can", name);
  return give_file(s, name);
}

static void *module_of(rpc_session *s, const rpc_value *v) {
  const rpc_held *held = rpc_handles_find(&s->handles, v->of.handle);
  if (held != NULL && held->kind == RPC_HELD_MODULE) return held->pointer;
  rpc_fail(s, "the handle is no module of this session");
  return NULL;
}

static rpc_outcome module_function(rpc_session *s, const rpc_value *a) {
  TVMFunctionHandle f = NULL;
  void *module = module_of(s, &a[0]);
  if (module == NULL) return RPC_FAILED;
  if (TVMModGetFunction(module, a[1].of.text.data, a[2].of.i != 0, &f) != 0) return rpc_fail_tvm(s);
  if (f == NULL) return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_NULL});
  return rpc_give_object(s, RPC_HELD_FUNCTION, f);
}

static rpc_outcome import_module(rpc_session *s, const rpc_value *a) {
  void *module = module_of(s, &a[0]), *of = module != NULL ? module_of(s, &a[1]) : NULL;
  if (of == NULL) return RPC_FAILED;
  if (TVMModImport(module, of) != 0) return rpc_fail_tvm(s);
  return rpc_give_result(s, (rpc_value){.kind = RPC_KIND_NULL});
}

/* ---- by name */

/* Letters: s string, b bytes (or a string), m module, i int or bool. */
static const struct {
  const char *name, *letters;
  own_fn f;
} own[] = {
    {"tvm.rpc.server.upload", "sb", upload},
    {"tvm.rpc.server.download", "s", download},
    {"tvm.rpc.server.remove", "s", remove_file},
    {"tvm.rpc.server.workpath", "s", workpath},
    {"tvm.rpc.server.listdir", "s", listdir},
    {"tvm.rpc.server.load_module", "s", load_module},
    {"tvm.rpc.server.download_linked_module", "s", download_linked},
    {"tvm.rpc.server.ModuleGetFunction", "msi", module_function},
    {"tvm.rpc.server.ImportModule", "mm", import_module},
};

int rpc_own_find(const char *name) {
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
    if (strcmp(own[i].name, name) == 0) return (int)i;
  return -1;
}

static bool fits(char letter, rpc_kind k) {
  switch (letter) {
  case 's': return k == RPC_KIND_STRING;
  case 'b': return k == RPC_KIND_BYTES || k == RPC_KIND_STRING;
  case 'm': return k == RPC_KIND_MODULE || k == RPC_KIND_HANDLE;
  default: return k == RPC_KIND_INT || k == RPC_KIND_BOOL;
  }
}

rpc_outcome rpc_own_call(rpc_session *s, uint32_t index, const rpc_value *args, uint32_t n) {
  const char *letters = own[index].letters;
  if (n != strlen(letters))
    return rpc_fail(s, "%s takes %u arguments, not %u", own[index].name, (unsigned)strlen(letters), (unsigned)n);
  for (uint32_t i = 0; i < n; i++)
    if (!fits(letters[i], args[i].kind)) return rpc_fail(s, "%s: argument %u has the wrong type", own[index].name, i);
  return own[index].f(s, args);
}
