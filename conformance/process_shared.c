/* Cases of the group "process": what a plugin shares with the whole process though it may not: functions of libc with a
 * state of their own, data at file scope, and copies of the process. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "conformance/process_left.h"

#include <dirent.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/interpose.h"
#include "conformance/kit_side.h"

static bool all_stages(kit *k) {
  return kit_stage_library(k) && kit_stage_entry(k) && kit_stage_instance(k) && kit_stage_device(k);
}

/* ---- functions */

void process_functions(kit *k) {
  interpose_watch(k->file);
  const bool there = all_stages(k);
  if (there) {
    process_work(k);
    kit_close_all(k);
  }
  const char *name = interpose_shared();
  if (name != NULL && strncmp(name, "wait", 4) == 0)
    kit_fail(k, "the plugin called %s for any child process; it waits for its own, by their process ids", name);
  if (name != NULL && strcmp(name, "__register_atfork") == 0) name = "pthread_atfork";
  if (name != NULL) kit_fail(k, "the plugin called %s, whose state the whole process shares", name);
  if (!there) kit_skip(k, "%s", k->err.text);
}

/* ---- data at file scope */

enum { PARTS = 4 };

typedef struct part {
  const unsigned char *at;
  unsigned char *copy;
  size_t bytes;
} part;

typedef struct parts {
  const char *file;
  uintptr_t base;
  uint32_t n;
  part all[PARTS];
} parts;

/* The writable segments of the plugin's file, less what is made read-only when it is loaded. */
static int find_parts(struct dl_phdr_info *info, size_t size, void *arg) {
  parts *p = arg;
  char mine[4096], real[4096];
  uintptr_t from = 0, to = 0; /* read-only from here to there */
  (void)size;
  if (info->dlpi_name == NULL || realpath(info->dlpi_name, mine) == NULL || realpath(p->file, real) == NULL) return 0;
  if (strcmp(mine, real) != 0) return 0;
  p->base = info->dlpi_addr;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
      from = p->base + info->dlpi_phdr[i].p_vaddr;
      to = (from + info->dlpi_phdr[i].p_memsz) / page * page;
    }
  for (int i = 0; i < info->dlpi_phnum && p->n < PARTS; i++) {
    const ElfW(Phdr) *h = &info->dlpi_phdr[i];
    if (h->p_type != PT_LOAD || (h->p_flags & PF_W) == 0) continue;
    uintptr_t at = p->base + h->p_vaddr;
    const uintptr_t end = at + h->p_memsz;
    if (at >= from && at < to) at = to;
    if (at < end) p->all[p->n++] = (part){.at = (const unsigned char *)at, .bytes = end - at};
  }
  return 1;
}

static void round_of_all(kit *k) {
  kit_ok(k, k->root.open_instance(&k->host, &k->instance, &k->err), "open_instance");
  k->dev = kit_open(k, k->index);
  process_work(k);
}

/* What is written once, such as the guard of a constant, is so after the first round. */
void process_globals(kit *k) {
  parts p = {.file = k->file};
  if (k->host.features != 0) kit_skip(k, "a sanitizer has data of its own in the plugin's file");
  if (!all_stages(k)) kit_skip(k, "%s", k->err.text);
  process_work(k);
  kit_close_all(k);
  round_of_all(k);
  kit_close_all(k);
  if (dl_iterate_phdr(find_parts, &p) == 0) kit_skip(k, "the plugin's file is not found among those that are loaded");
  for (uint32_t i = 0; i < p.n; i++) {
    p.all[i].copy = malloc(p.all[i].bytes);
    if (p.all[i].copy == NULL) kit_skip(k, "the kit is out of memory");
    memcpy(p.all[i].copy, p.all[i].at, p.all[i].bytes);
  }
  round_of_all(k);
  for (uint32_t i = 0; i < p.n; i++) {
    size_t at = 0;
    while (at < p.all[i].bytes && p.all[i].copy[at] == p.all[i].at[at]) at++;
    if (at < p.all[i].bytes)
      kit_fail(k,
               "data at file scope changes when an instance is used: the byte at 0x%" PRIxPTR
               " of the file; a plugin keeps "
               "none there",
               (uintptr_t)p.all[i].at + at - p.base);
    free(p.all[i].copy);
  }
  kit_close_all(k);
}

/* ---- copies of the process, and its children */

static bool is_copy(const char *pid, int *out) {
  char path[64], text[256], mine[4096], theirs[4096];
  snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  FILE *file = fopen(path, "re");
  const bool read = file != NULL && fgets(text, sizeof text, file) != NULL;
  if (file != NULL) fclose(file);
  const char *end = read ? strrchr(text, ')') : NULL; /* a name may hold anything */
  char state = 0;
  int parent = 0;
  if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2 || parent != getpid() || state == 'Z')
    return false;
  snprintf(path, sizeof path, "/proc/%.20s/exe", pid);
  const ssize_t n = readlink("/proc/self/exe", mine, sizeof mine), m = readlink(path, theirs, sizeof theirs);
  *out = atoi(pid);
  return n > 0 && n == m && memcmp(mine, theirs, (size_t)n) == 0;
}

static int first_copy(void) {
  int found = 0;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return 0;
  for (const struct dirent *e; found == 0 && (e = readdir(folder)) != NULL;)
    if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && !is_copy(e->d_name, &found)) found = 0;
  closedir(folder);
  return found;
}

/* A child of the plugin's has a moment to start its program. */
void process_forked(kit *k) {
  if (!all_stages(k)) kit_skip(k, "%s", k->err.text);
  process_work(k);
  const uint64_t end = kit_now_ms() + kit_patience_ms(k, 1000);
  int copy = first_copy();
  while (copy != 0 && kit_now_ms() < end) {
    kit_sleep_ms(20);
    copy = first_copy();
  }
  if (copy != 0) kill(copy, SIGKILL);
  if (copy != 0)
    kit_fail(k, "process %d is a forked copy of the host that goes on; a plugin that needs a process starts a program",
             copy);
}

/* A child of the program's ends while the plugin works: the program still learns how. */
void process_child_kept(kit *k) {
  enum { CODE = 37 };
  int status = 0;
  const pid_t child = fork();
  if (child < 0) kit_skip(k, "the kit could not start a process");
  if (child == 0) _exit(CODE);
  const bool there = all_stages(k);
  if (there) {
    process_work(k);
    kit_close_all(k);
  }
  const pid_t got = waitpid(child, &status, 0);
  if (got != child || !WIFEXITED(status) || WEXITSTATUS(status) != CODE)
    kit_fail(k,
             "a child process of the program's was waited for by the plugin: the program does not learn how it ended");
  if (!there) kit_skip(k, "%s", k->err.text);
}
