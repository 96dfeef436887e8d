/* core/elf.c: reads the ELF header and the dynamic section of a plugin before it is opened.
 * A library of another machine would only fail in dlopen, but one that needs a sanitizer's runtime ends the process
 * from inside it; so the names of needed libraries and of dynamic symbols are looked at first. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/elf.h"
#include "core/error.h"
#include "core/parts.h"

#if defined(__x86_64__)
enum { OUR_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OUR_MACHINE = EM_AARCH64 };
#else
#error "this machine's number in ELF headers is not known here"
#endif

enum { MAX_HEADERS = 256, MAX_DYNAMIC = 1 << 16, MAX_STRINGS = 1 << 26 };

typedef struct sanitizer {
  const char *symbol;     /* that everything built with it refers to */
  const char *library[2]; /* part of the runtime's file name, gcc's and clang's */
  const char *name;
  uint64_t feature;
} sanitizer;

static const sanitizer sanitizers[] = {
    {"__asan_init", {"libasan.so", "libclang_rt.asan"}, "AddressSanitizer", HEDDLE_FEATURE_ASAN},
    {"__tsan_init", {"libtsan.so", "libclang_rt.tsan"}, "ThreadSanitizer", HEDDLE_FEATURE_TSAN},
    {"__msan_init", {"libmsan.so", "libclang_rt.msan"}, "MemorySanitizer", HEDDLE_FEATURE_MSAN},
    {"__hwasan_init", {"libhwasan.so", "libclang_rt.hwasan"}, "hardware-assisted AddressSanitizer", 0},
};

/* Whether the process has the runtime. Without dlopen all code is the program's own, and was linked with what it needs. */
static bool is_there(const char *symbol) {
#if HEDDLE_HAS_DLOPEN
  return dlsym(RTLD_DEFAULT, symbol) != NULL;
#else
  (void)symbol;
  return true;
#endif
}

uint64_t heddle__elf_sanitizers(void) {
  uint64_t features = 0;
  for (size_t i = 0; i < sizeof sanitizers / sizeof sanitizers[0]; i++)
    if (is_there(sanitizers[i].symbol)) features |= sanitizers[i].feature;
  return features;
}

/* Reads exactly bytes at offset; false where the file is shorter. */
static bool read_at(int fd, uint64_t offset, void *dst, size_t bytes) {
  if (offset > (uint64_t)INT64_MAX - bytes) return false;
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pread(fd, (char *)dst + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static heddle_status bad(heddle_error *err, const char *what) {
  return heddle__fail(err, HEDDLE_EABI, "not a shared library that can be loaded: %s", what);
}

static heddle_status check_header(const Elf64_Ehdr *h, heddle_error *err) {
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return bad(err, "it is no ELF file");
  if (h->e_ident[EI_CLASS] != ELFCLASS64) return bad(err, "it is for 32-bit programs, this is a 64-bit one");
  if (h->e_ident[EI_DATA] != ELFDATA2LSB) return bad(err, "it is big-endian, this machine is little-endian");
  if (h->e_machine != OUR_MACHINE)
    return heddle__fail(err, HEDDLE_EABI, "it is for another kind of processor (ELF machine %u, this is %d)",
                        (unsigned)h->e_machine, (int)OUR_MACHINE);
  if (h->e_type != ET_DYN) return bad(err, "it is an ELF file of another type");
  if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 || h->e_phnum > MAX_HEADERS)
    return bad(err, "its program headers are malformed");
  return HEDDLE_OK;
}

/* Where an address of the loaded library lies in the file; UINT64_MAX where nowhere. */
static uint64_t file_offset(const Elf64_Phdr *ph, size_t n, uint64_t address) {
  for (size_t i = 0; i < n; i++)
    if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr && address - ph[i].p_vaddr < ph[i].p_filesz)
      return ph[i].p_offset + (address - ph[i].p_vaddr);
  return UINT64_MAX;
}

/* A library that is verified may not have others loaded by path, which nobody verifies. */
static heddle_status check_alone(const char *strings, size_t bytes, const Elf64_Dyn *dyn, size_t n_dyn,
                                 heddle_error *err) {
  for (size_t i = 0; i < n_dyn; i++) {
    const int64_t tag = dyn[i].d_tag;
    if (tag != DT_RPATH && tag != DT_RUNPATH && tag != DT_NEEDED && tag != DT_FILTER && tag != DT_AUXILIARY) continue;
    if (dyn[i].d_un.d_val >= bytes) return bad(err, "its string table is malformed");
    const char *name = strings + dyn[i].d_un.d_val;
    bool is_path = tag == DT_RPATH || tag == DT_RUNPATH;
    if (is_path ? name[0] == '\0' : strchr(name, '/') == NULL) continue;
    return heddle__fail(err, HEDDLE_EDENIED,
                        "it is signed, and %s '%.200s', where libraries lie that nobody verifies: link it without",
                        is_path ? "has a run path" : "needs the library", name);
  }
  return HEDDLE_OK;
}

/* strings[0..bytes) is the dynamic string table: it holds the name of every dynamic symbol and needed library. */
static heddle_status check_strings(const char *strings, size_t bytes, const Elf64_Dyn *dyn, size_t n_dyn,
                                   heddle_error *err) {
  for (size_t k = 0; k < sizeof sanitizers / sizeof sanitizers[0]; k++) {
    const sanitizer *s = &sanitizers[k];
    bool uses = false;
    for (size_t i = 0; i < n_dyn && !uses; i++) {
      if (dyn[i].d_tag != DT_NEEDED) continue;
      if (dyn[i].d_un.d_val >= bytes) return bad(err, "its string table is malformed");
      const char *name = strings + dyn[i].d_un.d_val;
      uses = strncmp(name, s->library[0], strlen(s->library[0])) == 0 ||
             strncmp(name, s->library[1], strlen(s->library[1])) == 0;
    }
    for (const char *p = strings; p < strings + bytes && !uses; p += strlen(p) + 1) uses = strcmp(p, s->symbol) == 0;
    if (uses && !is_there(s->symbol))
      return heddle__fail(err, HEDDLE_EABI,
                          "it was built with %s, whose runtime this process lacks: loading it would end the process; "
                          "build both alike",
                          s->name);
  }
  return HEDDLE_OK;
}

static heddle_status check_dynamic(int fd, const Elf64_Phdr *ph, size_t n_ph, bool alone, heddle_error *err) {
  const Elf64_Phdr *where = NULL;
  for (size_t i = 0; i < n_ph; i++)
    if (ph[i].p_type == PT_DYNAMIC) where = &ph[i];
  if (where == NULL) return bad(err, "it has no dynamic section");
  if (where->p_filesz > MAX_DYNAMIC) return bad(err, "its dynamic section is too large");

  size_t n = (size_t)(where->p_filesz / sizeof(Elf64_Dyn));
  heddle_status s = HEDDLE_OK;
  char *strings = NULL;
  Elf64_Dyn *dyn = heddle__alloc(n, sizeof *dyn);
  if (dyn == NULL) return heddle__no_memory(err, "a plugin's headers");
  uint64_t table = UINT64_MAX, bytes = 0;
  if (!read_at(fd, where->p_offset, dyn, n * sizeof *dyn)) s = bad(err, "it is cut off");
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++) {
    if (dyn[i].d_tag == DT_NULL) n = i;
    if (dyn[i].d_tag == DT_STRTAB) table = file_offset(ph, n_ph, dyn[i].d_un.d_ptr);
    if (dyn[i].d_tag == DT_STRSZ) bytes = dyn[i].d_un.d_val;
  }
  if (s == HEDDLE_OK && (table == UINT64_MAX || bytes == 0 || bytes > MAX_STRINGS))
    s = bad(err, "its string table is malformed");
  if (s == HEDDLE_OK) {
    strings = heddle__alloc((size_t)bytes + 1, 1); /* a terminator of our own */
    if (strings == NULL) s = heddle__no_memory(err, "a plugin's headers");
    else if (!read_at(fd, table, strings, (size_t)bytes)) s = bad(err, "it is cut off");
    else s = check_strings(strings, (size_t)bytes, dyn, n, err);
    if (s == HEDDLE_OK && alone) s = check_alone(strings, (size_t)bytes, dyn, n, err);
  }
  heddle__free(strings);
  heddle__free(dyn);
  return s;
}

static heddle_status check_file(const char *path, bool alone, heddle_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not hold us up */
  if (fd < 0) return heddle__fail(err, HEDDLE_EIO, "it could not be opened (errno %d)", errno);
  struct stat info;
  Elf64_Ehdr header = {0};
  Elf64_Phdr ph[MAX_HEADERS] = {{0}};
  heddle_status s = HEDDLE_OK;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) s = bad(err, "it is no regular file");
  else if (!read_at(fd, 0, &header, sizeof header)) s = bad(err, "it is no ELF file");
  else s = check_header(&header, err);
  if (s == HEDDLE_OK && !read_at(fd, header.e_phoff, ph, header.e_phnum * sizeof ph[0])) s = bad(err, "it is cut off");
  if (s == HEDDLE_OK) s = check_dynamic(fd, ph, header.e_phnum, alone, err);
  close(fd);
  return s;
}

heddle_status heddle__elf_check(const char *path, heddle_error *err) {
  return check_file(path, false, err);
}

heddle_status heddle__elf_check_alone(const char *path, heddle_error *err) {
  return check_file(path, true, err);
}
