/* tools/plan.c: heddle plan: where each node would run and why, as text, as JSON, or as a picture through Graphviz. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "text.h"

extern char **environ;

static const option known[] = {
    OPTIONS_OF_PLANS,
    OPTION_PARAMS,
    OPTION_LIB,
    OPTION_MODEL_NAME,
    {"input", OPTION_PAIRS, "NAME=FILE.npy", offsetof(options, inputs), "plans for inputs of this shape and value"},
    OPTION_DIM,
    {"svg", OPTION_TEXT, "FILE", offsetof(options, svg), "draws the plan with Graphviz"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object: every access with its bytes and order"},
    {"all", OPTION_FLAG, NULL, offsetof(options, all), "every row of long tables"},
    OPTION_IN_FLIGHT("plans for N runs at the same time, each in memory of its own but for the constants"),
    OPTION_PROGRAMS,
    OPTION_SET,
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

/* ---- text, without the rows of long sections */

/* A row begins with two spaces; what is left out is counted. */
static void print_cut(const char *text) {
  while (*text != '\0') {
    uint32_t rows = 0, row = 0;
    for (const char *p = text; strncmp(p, "  ", 2) == 0; rows++) {
      const char *end = strchr(p, '\n');
      if (end == NULL) break;
      p = end + 1;
    }
    if (rows == 0) { /* a heading, or an empty line */
      size_t n = strcspn(text, "\n") + 1;
      n -= text[n - 1] == '\0';
      put_text(text, n);
      text += n;
      continue;
    }
    for (; row < rows; row++) {
      size_t n = strcspn(text, "\n") + 1;
      if (row < rows_shown(rows, false)) put_text(text, n);
      text += n;
    }
    rows_left_out(rows, false);
  }
}

/* ---- pictures */

static int write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  bool good = f != NULL && fputs(text, f) >= 0;
  int error = errno;
  if (f != NULL && fclose(f) != 0) {
    good = false;
    error = errno;
  }
  return good ? DONE : fail_text("plan", "cannot write %s: %s", path, strerror(error));
}

static bool write_all(int fd, const char *text, size_t n) {
  while (n > 0) {
    ssize_t done = write(fd, text, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text += done;
    n -= (size_t)done;
  }
  return true;
}

typedef enum drawn { DRAWN, NO_GRAPHVIZ, NOT_DRAWN } drawn;

/* Runs Graphviz's dot with the text on its standard input. SIGPIPE is ignored (main.c). */
static drawn draw(const char *text, const char *path) {
  char tsvg[] = "-Tsvg", dash_o[] = "-o", name[] = "dot";
  char *out = strdup(path);
  char *const argv[] = {name, tsvg, dash_o, out, NULL};
  int ends[2];
  pid_t pid;
  posix_spawn_file_actions_t actions;
  if (out == NULL || pipe(ends) != 0) {
    free(out);
    return NOT_DRAWN;
  }
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  int error = posix_spawn_file_actions_init(&actions);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    if (error == 0) error = posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (error == 0) error = posix_spawnp(&pid, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
  }
  free(out);
  close(ends[0]);
  bool written = error == 0 && write_all(ends[1], text, strlen(text));
  close(ends[1]);
  if (error != 0) return error == ENOENT || error == EACCES ? NO_GRAPHVIZ : NOT_DRAWN;
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return NOT_DRAWN;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return NO_GRAPHVIZ; /* exec failed after the fork */
  return written && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? DRAWN : NOT_DRAWN;
}

/* FILE.svg has FILE.dot beside it. */
static int picture(const char *text, const char *path) {
  drawn done = draw(text, path);
  if (done == DRAWN) {
    print("wrote %s\n", path);
    return DONE;
  }
  size_t n = strlen(path);
  if (n > 4 && strcmp(path + n - 4, ".svg") == 0) n -= 4;
  char *beside = malloc(n + 5);
  if (beside == NULL) return fail_text("plan", "out of memory");
  snprintf(beside, n + 5, "%.*s.dot", (int)n, path);
  int status = write_file(beside, text);
  if (status == DONE && done == NO_GRAPHVIZ)
    print("wrote %s: Graphviz's dot is not installed here; dot -Tsvg draws the picture from it\n", beside);
  else if (status == DONE) status = fail_text("plan", "dot could not write %s; its input is in %s", path, beside);
  free(beside);
  return status;
}

static int plan(const options *o) {
  if (o->json + (o->svg != NULL) + o->all > 1) {
    print_error("heddle plan: only one of --json, --svg and --all\n");
    return WRONG_WORDS;
  }
  session s;
  char *text = NULL;
  heddle_error err = {0};
  heddle_explain_format format = o->json          ? HEDDLE_EXPLAIN_JSON
                                 : o->svg != NULL ? HEDDLE_EXPLAIN_DOT
                                                  : HEDDLE_EXPLAIN_TEXT;
  int status = session_model(&s, "plan", o);
  if (status == DONE && heddle_model_explain(s.model, format, s.names, s.values, s.n_values, &text, &err) != HEDDLE_OK)
    status = session_plan_failed(&s, &err);
  if (status == DONE && !s.is_root)
    ; /* rank 0 prints it */
  else if (status == DONE && o->svg != NULL) status = picture(text, o->svg);
  else if (status == DONE && (o->json || o->all)) put_text(text, strlen(text));
  else if (status == DONE) print_cut(text);
  heddle_free(text);
  return session_finish(&s, status);
}

const command plan_command = {
    "plan",
    "where each node would run and why; copies, routes, streams, memory",
    "Plans a model without running it, and says where each node would run and why, what is copied between devices and\n"
    "how, and how much memory that takes. docs/cli.md says what the JSON holds.",
    known,
    true,
    plan};
