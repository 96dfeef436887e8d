/* modules/tvm/map.c: maps the file of a compiled library into the process, with the names that it imports: of tvm-ffi
 * (libheddle_tvm_ffi) or of TVM's C++ runtime (libheddle_tvm_cxx), which lie beside this library. */
#define _GNU_SOURCE /* dladdr, memmem */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "modules/tvm/library.h"
#include "modules/tvm_cxx/entry.h"

/* A library beside this one, with its names visible to all; NULL: it is not there. */
static void *open_beside(const char *name) {
  char path[4096];
  Dl_info own;
  if (dladdr((const void *)(uintptr_t)&open_beside, &own) == 0 || own.dli_fname == NULL) return NULL;
  const char *slash = strrchr(own.dli_fname, '/');
  int n = snprintf(path, sizeof path, "%.*s/%s", slash != NULL ? (int)(slash - own.dli_fname) : 1,
                   slash != NULL ? own.dli_fname : ".", name);
  return n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) : NULL;
}

const heddle__tvm_cxx_table *heddle__tvm_cxx(heddle_error *err) {
#ifdef HEDDLE_HAS_TVM_CXX
  const heddle__tvm_cxx_table *(*entry)(void);
  void *library = open_beside("libheddle_tvm_cxx.so.0");
  void *symbol = library != NULL ? dlsym(library, "heddle_tvm_cxx_entry") : NULL;
  memcpy(&entry, &symbol, sizeof entry);
  if (symbol == NULL) {
    const char *words = dlerror();
    heddle__fail(err, HEDDLE_EUNSUPPORTED, "libheddle_tvm_cxx could not be opened: %.300s",
                 words != NULL ? words : "no reason given");
    return NULL;
  }
  const heddle__tvm_cxx_table *table = entry();
  if (strcmp(table->version, HEDDLE_VERSION) == 0) return table;
  heddle__fail(err, HEDDLE_EABI, "libheddle_tvm_cxx is of version %.60s, and libheddle_tvm of " HEDDLE_VERSION,
               table->version);
#else
  heddle__fail(err, HEDDLE_EUNSUPPORTED, "this build has no libheddle_tvm_cxx (HEDDLE_TVM_CXX)");
#endif
  return NULL;
}

/* Whether a file has these bytes, such as the name of a symbol with the zero before it. */
static bool file_has(const char *path, const char *mark, size_t n) {
  struct stat info;
  bool found = false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &info) == 0 && info.st_size > 0) {
    void *text = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text != MAP_FAILED) {
      found = memmem(text, (size_t)info.st_size, mark, n) != NULL;
      munmap(text, (size_t)info.st_size);
    }
  }
  close(fd);
  return found;
}

/* Why dlopen failed; its own text may go with the next call. */
static void copy_reason(char *out, size_t size) {
  const char *words = dlerror();
  snprintf(out, size, "%s", words != NULL ? words : "no reason given");
}

/* Whether the file was compiled against TVM's headers of v0.8 or older and passes functions of C++ on: there they are
 * std::function, and the names of what takes them are those of v0.9 to v0.12. */
static bool is_too_old(const char *path) {
  static const char function[] = "_Function_handlerIFvN3tvm7runtime7TVMArgsE", object[] = "PackedFuncObj";
  static const char *const takers[] = {"_ZN3tvm7runtime8Registry8set_body", "_ZN3tvm7runtime8Registry3Get",
                                       "_ZN3tvm7runtime10ModuleNode11GetFunction"};
  if (!file_has(path, function, sizeof function - 1) || file_has(path, object, sizeof object - 1)) return false;
  for (size_t i = 0; i < sizeof takers / sizeof takers[0]; i++)
    if (file_has(path, takers[i], strlen(takers[i]))) return true;
  return false;
}

/* Whether the names that the file imports lie beside this library, which is opened then. */
static bool open_names(const char *path, const char **eras) {
  static const char ffi[] = "TVMFFI", objects[] = "3tvm7runtime", runtime[] = "\0libtvm_runtime.so";
  bool found = file_has(path, ffi, sizeof ffi - 1) && open_beside("libheddle_tvm_ffi.so.0") != NULL;
  if (file_has(path, runtime, sizeof runtime)) found = open_beside("heddle/tvm/libtvm_runtime.so") != NULL || found;
  if (file_has(path, objects, sizeof objects - 1)) {
    const heddle__tvm_cxx_table *cxx = heddle__tvm_cxx(NULL);
    *eras = cxx != NULL ? cxx->eras : "";
    found = found || cxx != NULL;
  }
  return found;
}

/* A missing name is reported now; with lazy binding it would end the process when it is called. No code of a library
 * runs before all its names are found, so that it can be tried again. */
heddle_status heddle__library_map(const char *path, void **out, heddle_error *err) {
  static const char runtime[] = "\0libtvm";
  char words[600], advice[300] = "";
  const char *eras =
      NULL; /* of TVM's C++ runtime, where the file was made for it; "": libheddle_tvm_cxx is not there */
  /* What it registers by name is called later, and would be registered twice if it were opened again. */
  static const char registers[] = "_ZN3tvm7runtime8Registry8Register";
  int mode = RTLD_NOW | RTLD_LOCAL | (file_has(path, registers, sizeof registers - 1) ? RTLD_NODELETE : 0);
  if (is_too_old(path))
    return heddle__fail(
        err, HEDDLE_EABI,
        "it could not be loaded: it passes functions as TVM's C++ headers of v0.8 and older have them "
        "(std::function<void(TVMArgs, TVMRetValue*)>); libheddle_tvm_cxx has the names of v0.9 to v0.18");
  *out = dlopen(path, mode);
  if (*out != NULL) return HEDDLE_OK;
  copy_reason(words, sizeof words);
  if (open_names(path, &eras)) {
    *out = dlopen(path, mode);
    if (*out != NULL) return HEDDLE_OK;
    copy_reason(words, sizeof words);
  }
  if (file_has(path, runtime, sizeof runtime - 1))
    snprintf(advice, sizeof advice,
             "it was linked to TVM's own runtime, which is not here: link it again without that; "
             "what it takes from TVM's C runtime is in libheddle_tvm");
  else if (eras != NULL && eras[0] == '\0')
    snprintf(advice, sizeof advice,
             "it was compiled against TVM's own C++ headers, and libheddle_tvm_cxx, which has their "
             "names, is not here");
  else if (eras != NULL)
    snprintf(advice, sizeof advice,
             "it was compiled against TVM's own C++ headers; libheddle_tvm_cxx has names of %s, and "
             "not this one",
             eras);
  return heddle__fail(err, HEDDLE_EABI, "it could not be loaded: %s%s%s%s", words, advice[0] != '\0' ? " (" : "",
                      advice, advice[0] != '\0' ? ")" : "");
}
