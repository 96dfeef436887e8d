/* conformance/process_state.c: variables, handlers and mask of signals, locale, folder, file mode mask, limits and the
 * floating-point environment of this process, before and after, and what process_kernel.c has. */
#define _GNU_SOURCE /* dladdr */
#include "conformance/process_state.h"

#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/elf_symbols.h"
#include "conformance/process_kernel.h"

extern char **environ;

enum { SIGNALS = 65, LIMITS = 16, MOST_PATH = 4096 };

struct process_state {
  char **variables;
  size_t n_variables;
  struct sigaction actions[SIGNALS];
  sigset_t mask;
  char locale[512], folder[MOST_PATH];
  mode_t mode;
  struct rlimit limits[LIMITS];
  fenv_t floats;
  int rounding;
  process_kernel *kernel;
};

static mode_t file_mode(void) {
  mode_t mode = umask(022);
  umask(mode);
  return mode;
}

static bool take_variables(process_state *s) {
  while (environ != NULL && environ[s->n_variables] != NULL) s->n_variables++;
  s->variables = calloc(s->n_variables + 1, sizeof *s->variables);
  for (size_t i = 0; s->variables != NULL && i < s->n_variables; i++)
    if ((s->variables[i] = strdup(environ[i])) == NULL) return false;
  return s->variables != NULL;
}

void process_state_free(process_state *s) {
  if (s == NULL) return;
  for (size_t i = 0; s->variables != NULL && i < s->n_variables; i++) free(s->variables[i]);
  free(s->variables);
  free(s->kernel);
  free(s);
}

process_state *process_state_take(void) {
  process_state *s = calloc(1, sizeof *s);
  if (s == NULL || !take_variables(s) || (s->kernel = process_kernel_take()) == NULL) {
    process_state_free(s);
    return NULL;
  }
  for (int i = 1; i < SIGNALS; i++) sigaction(i, NULL, &s->actions[i]);
  pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
  const char *locale = setlocale(LC_ALL, NULL);
  snprintf(s->locale, sizeof s->locale, "%s", locale != NULL ? locale : "");
  if (getcwd(s->folder, sizeof s->folder) == NULL) s->folder[0] = '\0';
  s->mode = file_mode();
  for (int i = 0; i < LIMITS; i++) getrlimit(i, &s->limits[i]);
  fegetenv(&s->floats);
  s->rounding = fegetround();
  return s;
}

static bool has(char *const *list, size_t n, const char *text) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], text) == 0) return true;
  return false;
}

/* A symbol that the file wants from libc, by which variables are changed. */
static bool changes_variables(void *sink, const char *name, bool defined) {
  static const char *const names[] = {"setenv", "putenv", "unsetenv", "clearenv"};
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !defined; i++)
    if (strcmp(name, names[i]) == 0) *(bool *)sink = true;
  return true;
}

static bool variables_differ(const process_state *a, const process_state *b, const char *plugin, char *out,
                             size_t bytes, char *note, size_t note_bytes) {
  bool its_own = false;
  for (int side = 0; side < 2; side++) {
    const process_state *x = side == 0 ? a : b, *y = side == 0 ? b : a;
    for (size_t i = 0; i < x->n_variables; i++)
      if (!has(y->variables, y->n_variables, x->variables[i])) {
        int n = (int)strcspn(x->variables[i], "=");
        snprintf(out, bytes, "the variable %.*s", n, x->variables[i]);
        if (elf_symbols(plugin, changes_variables, &its_own) != NULL || its_own) return true;
        snprintf(note, note_bytes, "a driver's library changed the variable %.*s of the process", n, x->variables[i]);
      }
  }
  return false;
}

static uintptr_t handler_of(const struct sigaction *a) {
  uintptr_t address;
  if ((a->sa_flags & SA_SIGINFO) != 0) memcpy(&address, &a->sa_sigaction, sizeof address);
  else memcpy(&address, &a->sa_handler, sizeof address);
  return address;
}

/* The library in which a handler lies; NULL for the default, for none, and where it is unknown. */
static const char *library_of(uintptr_t handler) {
  Dl_info info;
  void *address;
  memcpy(&address, &handler, sizeof address);
  if (handler <= 1 || dladdr(address, &info) == 0) return NULL;
  return info.dli_fname;
}

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool handlers_differ(const process_state *a, const process_state *b, const char *plugin, char *out, size_t bytes,
                            char *note, size_t note_bytes) {
  for (int i = 1; i < SIGNALS; i++) {
    uintptr_t now = handler_of(&b->actions[i]);
    if (handler_of(&a->actions[i]) == now) continue;
    const char *library = library_of(now);
    if (library != NULL && !same_file(library, plugin)) {
      const char *slash = strrchr(library, '/');
      snprintf(note, note_bytes, "%s, a library of the driver's, handles signal %d of the process",
               slash != NULL ? slash + 1 : library, i);
      continue;
    }
    snprintf(out, bytes, "the handler of signal %d (%s)", i, strsignal(i));
    return true;
  }
  return false;
}

/* Rounding, and what is masked and flushed: the control bits, not the flags that arithmetic leaves. */
static bool floats_differ(const process_state *a, const process_state *b) {
  if (a->rounding != b->rounding) return true;
#if defined(__x86_64__)
  return (a->floats.__control_word & 0x0f3f) != (b->floats.__control_word & 0x0f3f) ||
         (a->floats.__mxcsr & 0xffc0) != (b->floats.__mxcsr & 0xffc0);
#elif defined(__aarch64__)
  return a->floats.__fpcr != b->floats.__fpcr;
#else
  return false;
#endif
}

bool process_state_differs(const process_state *a, const char *plugin, char *out, size_t bytes, char *note,
                           size_t note_bytes) {
  process_state *b = process_state_take();
  if (b == NULL) return false;
  const char *what = process_kernel_differs(a->kernel);
  process_changer changer = {.what = what};
  if (what != NULL && elf_symbols(plugin, process_kernel_changer, &changer) == NULL && !changer.found) {
    snprintf(note, note_bytes, "a driver's library changed %s", what);
    what = NULL;
  }
  bool reported = variables_differ(a, b, plugin, out, bytes, note, note_bytes) ||
                  handlers_differ(a, b, plugin, out, bytes, note, note_bytes);
  for (int i = 1; i < SIGNALS && what == NULL; i++)
    if (sigismember(&a->mask, i) != sigismember(&b->mask, i)) what = "the mask of signals of the calling thread";
  if (strcmp(a->locale, b->locale) != 0) what = "the locale";
  if (strcmp(a->folder, b->folder) != 0) what = "the current folder";
  if (a->mode != b->mode) what = "the mode mask of new files (umask)";
  for (int i = 0; i < LIMITS; i++)
    if (a->limits[i].rlim_cur != b->limits[i].rlim_cur || a->limits[i].rlim_max != b->limits[i].rlim_max)
      what = "a limit of the process (setrlimit)";
  if (floats_differ(a, b)) what = "how the calling thread rounds or traps floating-point numbers";
  if (!reported && what != NULL) snprintf(out, bytes, "%s", what);
  process_state_free(b);
  return reported || what != NULL;
}
