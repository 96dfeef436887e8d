/* modules/tvm/map.c: maps the file of a compiled library into the process, with the names that it imports: of tvm-ffi
 * (libheddle_tvm_ffi) or of TVM's C++ runtime (libheddle_tvm_cxx), which lie beside this library. */
#define _GNU_SOURCE /* dladdr, memmem */
#include <dlfcn.h>
#include <elf.h>
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

#ifdef HEDDLE_HAS_TVM_CXX
static void *entry_here(void) {
  return dlsym(RTLD_DEFAULT, "heddle_tvm_cxx_entry");
}
#else
static void *entry_here(void) {
  return NULL;
}
#endif

/* The names of both libraries are the same: a process has the first that was opened, or that the program is linked with. */
const heddle__tvm_cxx_table *heddle__tvm_cxx(heddle__cxx_functions functions, heddle_error *err) {
#ifdef HEDDLE_HAS_TVM_CXX
  const bool std = functions == HEDDLE__CXX_STD;
  const heddle__tvm_cxx_table *(*entry)(void);
  void *symbol = entry_here();
  if (symbol == NULL) {
    void *library = open_beside(std ? "libheddle_tvm_cxx_v08.so.0" : "libheddle_tvm_cxx.so.0");
    symbol = library != NULL ? dlsym(library, "heddle_tvm_cxx_entry") : NULL;
  }
  memcpy(&entry, &symbol, sizeof entry);
  if (symbol == NULL) {
    const char *words = dlerror();
    heddle__fail(err, HEDDLE_EUNSUPPORTED, "libheddle_tvm_cxx could not be opened: %.300s",
                 words != NULL ? words : "no reason given");
    return NULL;
  }
  const heddle__tvm_cxx_table *table = entry();
  if (strcmp(table->version, HEDDLE_VERSION) != 0)
    heddle__fail(err, HEDDLE_EABI, "libheddle_tvm_cxx is of version %.60s, and libheddle_tvm of " HEDDLE_VERSION,
                 table->version);
  else if (functions != HEDDLE__CXX_ANY && std != (table->has_std_functions != 0))
    heddle__fail(
        err, HEDDLE_EABI,
        "it passes functions as TVM's C++ headers of %s have them, and this process has those of %s: one process "
        "cannot have both",
        std ? "v0.8" : "v0.9 to v0.18", table->eras);
  else return table;
#else
  (void)functions;
  heddle__fail(err, HEDDLE_EUNSUPPORTED, "this build has no libheddle_tvm_cxx (HEDDLE_TVM_CXX)");
#endif
  return NULL;
}

/* The part of a file of size bytes that is mapped at an address of its own; NULL where it is not there whole. */
static const char *part(const char *file, size_t size, const Elf64_Phdr *segments, size_t n, uint64_t at,
                        uint64_t bytes) {
  for (size_t i = 0; i < n; i++) {
    const Elf64_Phdr *p = &segments[i];
    if (p->p_type != PT_LOAD || at < p->p_vaddr || at - p->p_vaddr > p->p_filesz) continue;
    uint64_t from = at - p->p_vaddr;
    if (bytes > p->p_filesz - from || p->p_offset > size || from > size - p->p_offset ||
        bytes > size - p->p_offset - from)
      return NULL;
    return file + p->p_offset + from;
  }
  return NULL;
}

/* The names of the symbols and libraries that a file has and needs; *n 0: they cannot be found. */
static const char *names_of(const char *file, size_t size, uint64_t *n) {
  Elf64_Ehdr head;
  *n = 0;
  if (size < sizeof head) return NULL;
  memcpy(&head, file, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phoff % 8 != 0 || head.e_phoff > size ||
      head.e_phnum > (size - head.e_phoff) / sizeof(Elf64_Phdr))
    return NULL;
  const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(file + head.e_phoff);
  uint64_t strings = 0, bytes = 0;
  for (size_t i = 0; i < head.e_phnum; i++) {
    const Elf64_Phdr *p = &segments[i];
    if (p->p_type != PT_DYNAMIC || p->p_offset > size || p->p_filesz > size - p->p_offset) continue;
    for (uint64_t k = 0; k < p->p_filesz / sizeof(Elf64_Dyn); k++) {
      Elf64_Dyn d;
      memcpy(&d, file + p->p_offset + k * sizeof d, sizeof d);
      if (d.d_tag == DT_STRTAB) strings = d.d_un.d_ptr;
      if (d.d_tag == DT_STRSZ) bytes = d.d_un.d_val;
    }
  }
  const char *found = part(file, size, segments, head.e_phnum, strings, bytes);
  if (found != NULL) *n = bytes;
  return found;
}

/* Whether these bytes are in a file: all of it, or its names, so that parameters and such are not read. */
static bool search(const char *path, const char *mark, size_t n, bool all) {
  struct stat info;
  bool found = false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &info) == 0 && info.st_size > 0) {
    void *file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED) {
      uint64_t bytes = (uint64_t)info.st_size;
      const char *from = all ? file : names_of(file, (size_t)info.st_size, &bytes);
      found = from != NULL && memmem(from, (size_t)bytes, mark, n) != NULL;
      munmap(file, (size_t)info.st_size);
    }
  }
  close(fd);
  return found;
}

static bool file_has(const char *path, const char *mark, size_t n) {
  return search(path, mark, n, false);
}

/* Why dlopen failed; its own text may go with the next call. */
static void copy_reason(char *out, size_t size) {
  const char *words = dlerror();
  snprintf(out, size, "%s", words != NULL ? words : "no reason given");
}

/* How a file that was compiled against TVM's headers passes functions of C++ on: in v0.8 and before they are std::function, and
 * the names of what takes them are those of v0.9 to v0.12. What shows it is the name of a std::function's call, or, in files
 * without local names, that of the type of a lambda, which std::function asks for. */
static heddle__cxx_functions functions_of(const char *path) {
  static const char object[] = "PackedFuncObj";
  static const char *const takers[] = {"_ZN3tvm7runtime8Registry8set_body", "_ZN3tvm7runtime8Registry3Get",
                                       "_ZN3tvm7runtime10ModuleNode11GetFunction",
                                       "_ZN3tvm7runtime10ModuleNode14GetFuncFromEnv"};
  static const char *const signs[] = {"_Function_handlerIFvN3tvm7runtime7TVMArgsE", "UlN3tvm7runtime7TVMArgsE",
                                      "UlRKN3tvm7runtime7TVMArgsE"};
  bool takes = false, is_std = false;
  for (size_t i = 0; i < sizeof takers / sizeof takers[0] && !takes; i++)
    takes = file_has(path, takers[i], strlen(takers[i]));
  if (!takes) return HEDDLE__CXX_ANY;
  for (size_t i = 0; i < sizeof signs / sizeof signs[0] && !is_std; i++)
    is_std = search(path, signs[i], strlen(signs[i]), true);
  return is_std && !search(path, object, sizeof object - 1, true) ? HEDDLE__CXX_STD : HEDDLE__CXX_OBJECTS;
}

/* Whether the names that the file imports lie beside this library, which is opened then. */
static bool open_names(const char *path, heddle__cxx_functions functions, const char **eras) {
  static const char ffi[] = "TVMFFI", objects[] = "3tvm7runtime", runtime[] = "\0libtvm_runtime.so";
  bool found = file_has(path, ffi, sizeof ffi - 1) && open_beside("libheddle_tvm_ffi.so.0") != NULL;
  if (file_has(path, runtime, sizeof runtime)) {
    const heddle__tvm_cxx_table *cxx = heddle__tvm_cxx(functions, NULL);
    const bool std = cxx != NULL && cxx->has_std_functions;
    found = open_beside(std ? "heddle/tvm-0.8/libtvm_runtime.so" : "heddle/tvm/libtvm_runtime.so") != NULL || found;
  }
  if (file_has(path, objects, sizeof objects - 1)) {
    const heddle__tvm_cxx_table *cxx = heddle__tvm_cxx(functions, NULL);
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
  /* What is here for another era would be found under the same names. */
  const heddle__cxx_functions functions = functions_of(path);
  if (functions != HEDDLE__CXX_ANY && entry_here() != NULL && heddle__tvm_cxx(functions, err) == NULL)
    return heddle__prefix(err, HEDDLE_EABI, "it could not be loaded: ");
  *out = dlopen(path, mode);
  if (*out != NULL) return HEDDLE_OK;
  copy_reason(words, sizeof words);
  if (open_names(path, functions, &eras)) {
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
