/* modules/pack/link.c: starts the C compiler, as its user names it, without a shell. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "modules/pack/objects.h"

extern char **environ;

enum { MOST_WORDS = 32, MOST_PRINTED = 1 << 16 };

/* The words of a command such as "ccache gcc"; text is cut into them. */
static size_t split(char *text, char **words) {
  size_t n = 0;
  for (char *rest = NULL, *word = strtok_r(text, " \t", &rest); word != NULL && n < MOST_WORDS;
       word = strtok_r(NULL, " \t", &rest))
    words[n++] = word;
  return n;
}

/* Runs a program with its output in a file; *status as waitpid gives it. Gives errno where it could not be started. */
static int run_compiler(char **words, const char *printed, int *status) {
  posix_spawn_file_actions_t files;
  pid_t child;
  int problem = posix_spawn_file_actions_init(&files);
  if (problem != 0) return problem;
  problem = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (problem == 0) problem = posix_spawn_file_actions_addopen(&files, 1, printed, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (problem == 0) problem = posix_spawn_file_actions_adddup2(&files, 1, 2);
  if (problem == 0) problem = posix_spawnp(&child, words[0], &files, NULL, words, environ);
  posix_spawn_file_actions_destroy(&files);
  while (problem == 0 && waitpid(child, status, 0) < 0)
    if (errno != EINTR) problem = errno;
  return problem;
}

static heddle_status report(const char *compiler, int status, const char *printed, heddle_error *err) {
  void *text = NULL;
  size_t n = 0;
  (void)heddle__file_read(printed, MOST_PRINTED, &text, &n, NULL);
  heddle__fail(err, HEDDLE_EFAILED, "the compiler %.60s failed (exit status %d): %.*s", compiler,
               WIFEXITED(status) ? WEXITSTATUS(status) : -1, (int)(n < 600 ? n : 600),
               text != NULL ? (char *)text : "");
  heddle__free(text);
  return HEDDLE_EFAILED;
}

heddle_status heddle__objects_link(heddle__objects *o, const char *compiler, void **out, size_t *bytes,
                                   heddle_error *err) {
  const char *given = compiler != NULL && compiler[0] != '\0' ? compiler : getenv("CC");
  const char *name = given != NULL && given[0] != '\0' ? given : "cc";
  char library[4200], printed[4200], *text = heddle__strndup(name, strlen(name));
  char **words = heddle__alloc((size_t)o->n_files + MOST_WORDS + 8, sizeof *words);
  heddle_status s = text != NULL && words != NULL ? HEDDLE_OK : heddle__no_memory(err, "a compiler's command");
  size_t n = s == HEDDLE_OK ? split(text, words) : 0;
  if (s == HEDDLE_OK && n == 0) s = heddle__fail(err, HEDDLE_EINVAL, "the compiler has no name");
  snprintf(library, sizeof library, "%s/packed.so", o->folder);
  snprintf(printed, sizeof printed, "%s/printed", o->folder);
  if (s == HEDDLE_OK) {
    static char shared[] = "-shared", pic[] = "-fPIC", optimise[] = "-O2", to[] = "-o";
    int status = 0;
    words[n++] = shared;
    words[n++] = pic;
    words[n++] = optimise;
    words[n++] = to;
    words[n++] = library;
    memcpy((void *)(words + n), (void *)o->files, o->n_files * sizeof *words);
    int problem = run_compiler(words, printed, &status);
    if (problem == ENOENT || (problem == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127))
      s = heddle__fail(err, HEDDLE_EUNSUPPORTED,
                       "objects are made a library by the C compiler, and there is none here: '%.100s' is not found; "
                       "install one, name it in CC, or give a finished library (.so)",
                       words[0]);
    else if (problem != 0)
      s = heddle__fail(err, HEDDLE_EIO, "the compiler '%.100s' could not be started: %s", words[0], strerror(problem));
    else if (status != 0) s = report(name, status, printed, err);
    else s = heddle__file_read(library, UINT64_C(1) << 36, out, bytes, err);
    unlink(library);
    unlink(printed);
  }
  heddle__free(text);
  heddle__free((void *)words);
  return s;
}
