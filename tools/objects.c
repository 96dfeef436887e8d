/* tools/objects.c: links the objects of a compiled model to a library: tar takes an archive apart, compressed or not, and the
 * C compiler links. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "objects.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
#include "text.h"

enum { MOST_OBJECTS = 4096, MOST_FOLDERS = 4 };

extern char **environ;

static char *folders[MOST_FOLDERS];       /* to remove at the end */
static const char *sources[MOST_FOLDERS]; /* what was linked there */
static int n_folders;

/* What nftw finds: it takes no argument of its caller's. */
static const char **found;
static size_t n_found;
static bool is_cxx;

static bool ends_in(const char *path, const char *end) {
  size_t n = strlen(path), m = strlen(end);
  return n > m && strcmp(path + n - m, end) == 0;
}

bool objects_are(const char *path) {
  return path != NULL && (ends_in(path, ".o") || ends_in(path, ".tar"));
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)info, (void)kind, (void)at;
  (void)remove(path);
  return 0;
}

static void remove_folders(void) {
  for (int i = 0; i < n_folders; i++) {
    (void)nftw(folders[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(folders[i]);
  }
  n_folders = 0;
}

static int take_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)at;
  if (kind != FTW_F || !S_ISREG(info->st_mode) || n_found == MOST_OBJECTS) return 0;
  char *copy = strdup(path);
  if (copy == NULL) return -1;
  is_cxx = is_cxx || ends_in(path, ".cc") || ends_in(path, ".cpp") || ends_in(path, ".cxx");
  found[n_found++] = copy;
  return 0;
}

/* Runs a program to its end: 0, its status, or -1 where it is not there. */
static int run_program(const char *program, const char *const *words) {
  pid_t child;
  int status;
  if (posix_spawnp(&child, program, NULL, NULL, (char *const *)(uintptr_t)words, environ) != 0) return -1;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? (WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status)) : 1;
}

static int link_found(const char *command, const char *path, const char *library) {
  const char *named = getenv(is_cxx ? "CXX" : "CC");
  const char *const compilers[] = {named != NULL && named[0] != '\0' ? named : NULL, is_cxx ? "c++" : "cc",
                                   is_cxx ? "g++" : "gcc", is_cxx ? "clang++" : "clang"};
  const char **words = calloc(n_found + 8, sizeof *words);
  if (words == NULL) return fail_text(command, "out of memory");
  int status = -1;
  for (size_t i = 0; i < sizeof compilers / sizeof compilers[0] && status == -1; i++) {
    size_t n = 0;
    if (compilers[i] == NULL) continue;
    words[n++] = compilers[i];
    words[n++] = "-shared";
    words[n++] = "-fPIC";
    words[n++] = "-o";
    words[n++] = library;
    for (size_t k = 0; k < n_found; k++) words[n++] = found[k];
    words[n++] = "-lm";
    words[n] = NULL;
    status = run_program(compilers[i], words);
  }
  free((void *)words);
  if (status == 0) return DONE;
  if (status == -1)
    return fail_text(
        command, "%s: objects are linked with a C compiler, and there is none; install one, or name it with CC", path);
  return fail_text(command, "%s: the compiler could not link it", path);
}

/* The folder and the objects in it; the archive's own names lie below. */
static int collect(const char *command, const char *path, const char *folder) {
  if (ends_in(path, ".o")) {
    found[n_found] = strdup(path);
    return found[n_found] != NULL ? (n_found++, DONE) : fail_text(command, "out of memory");
  }
  const char *const words[] = {"tar", "-xf", path, "-C", folder, NULL};
  const int status = run_program("tar", words);
  if (status == -1)
    return fail_text(command, "%s: the program tar takes such files apart, and there is none; install it", path);
  if (status != 0) return fail_text(command, "%s: this is no tar archive", path);
  if (nftw(folder, take_one, 16, FTW_PHYS) != 0) return fail_text(command, "out of memory");
  return n_found > 0 ? DONE : fail_text(command, "%s: the archive holds no objects", path);
}

/* The section of an object that heddle link wrote, whose bytes are a packed graph; size 0: it is another object. */
static Elf64_Shdr package_of(FILE *file) {
  const Elf64_Shdr none = {.sh_size = 0};
  Elf64_Ehdr head;
  Elf64_Shdr section;
  char begin[sizeof HEDDLE_PACK_MAGIC - 1];
  if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_REL || head.e_shentsize != sizeof section ||
      fseek(file, (long)(head.e_shoff + sizeof section), SEEK_SET) != 0 ||
      fread(&section, sizeof section, 1, file) != 1 || section.sh_type != SHT_PROGBITS ||
      fseek(file, (long)section.sh_offset, SEEK_SET) != 0 || fread(begin, sizeof begin, 1, file) != 1 ||
      memcmp(begin, HEDDLE_PACK_MAGIC, sizeof begin) != 0 || fseek(file, (long)section.sh_offset, SEEK_SET) != 0)
    return none;
  return section;
}

static bool write_all(int file, const char *bytes, size_t n) {
  while (n > 0) {
    const ssize_t done = write(file, bytes, n);
    if (done < 0 && errno != EINTR) return false;
    if (done < 0) continue;
    bytes += done;
    n -= (size_t)done;
  }
  return true;
}

/* The packed graph in an object that heddle link wrote, as a file; DONE too where it is another object, with *wrote false. */
static int write_package(const char *command, const char *path, const char *package, bool *wrote) {
  char block[1 << 16];
  FILE *from = fopen(path, "rb");
  *wrote = false;
  if (from == NULL) return fail_text(command, "%s: %s", path, strerror(errno));
  uint64_t left = package_of(from).sh_size;
  const int to = left > 0 ? open(package, O_WRONLY | O_CREAT | O_EXCL, 0600) : -1;
  int status = left == 0 || to >= 0 ? DONE : fail_text(command, "%s: %s", package, strerror(errno));
  while (left > 0 && status == DONE) {
    const size_t n = left < sizeof block ? (size_t)left : sizeof block;
    if (fread(block, 1, n, from) != n) status = fail_text(command, "%s: the object is cut off", path);
    else if (!write_all(to, block, n)) status = fail_text(command, "%s: %s", package, strerror(errno));
    left -= n;
  }
  if (to >= 0 && close(to) != 0 && status == DONE) status = fail_text(command, "%s: %s", package, strerror(errno));
  fclose(from);
  *wrote = to >= 0 && status == DONE;
  return status;
}

static char *make_folder(const char *command) {
  const char *tmp = getenv("TMPDIR");
  char folder[1024];
  snprintf(folder, sizeof folder, "%s/heddle-XXXXXX", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
  char *made = n_folders < MOST_FOLDERS && mkdtemp(folder) != NULL ? strdup(folder) : NULL;
  if (made == NULL) {
    fail_text(command, "%s: the folder cannot be made: %s", folder, strerror(errno));
    return NULL;
  }
  if (n_folders == 0) (void)atexit(remove_folders);
  return folders[n_folders++] = made;
}

const char *objects_source(const char *path) {
  for (int i = 0; i < n_folders; i++) {
    const size_t n = strlen(folders[i]);
    if (strncmp(path, folders[i], n) == 0 && path[n] == '/') return sources[i];
  }
  return path;
}

char *objects_link(const char *command, const char *path) {
  if (access(path, R_OK) != 0) {
    fail_text(command, "%s: %s", path, strerror(errno));
    return NULL;
  }
  const char *folder = make_folder(command), *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  if (folder == NULL) return NULL;
  sources[n_folders - 1] = path;
  size_t room = strlen(folder) + strlen(name) + 16;
  char *objects = malloc(room), *library = malloc(room);
  found = calloc(MOST_OBJECTS + 1, sizeof *found);
  n_found = 0;
  is_cxx = false;
  bool has_package = false;
  int status = objects != NULL && library != NULL && found != NULL ? DONE : fail_text(command, "out of memory");
  if (status == DONE && ends_in(path, ".o")) {
    snprintf(library, room, "%s/%s.heddle", folder, name);
    status = write_package(command, path, library, &has_package);
  }
  if (status == DONE && !has_package) {
    snprintf(library, room, "%s/%s.so", folder, name);
    snprintf(objects, room, "%s/objects", folder);
    if (mkdir(objects, 0700) != 0) status = fail_text(command, "%s: %s", objects, strerror(errno));
  }
  if (status == DONE && !has_package) status = collect(command, path, objects);
  if (status == DONE && !has_package) status = link_found(command, path, library);
  for (size_t i = 0; i < n_found; i++) free((char *)found[i]);
  free((void *)found);
  free(objects);
  if (status == DONE) return library;
  free(library);
  return NULL;
}
