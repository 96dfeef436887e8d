/* A test program: cmocka cases, each run in a process of its own, but those on a driver, which takes longer to start than
 * most cases: CTest runs these together (cmake/discover_cases.cmake).
 *
 *   program --list                prints a case a line, each followed by its labels; CTest reads this
 *   program CASE                  runs one case: exit 0 it passed, 1 it failed, 77 it was skipped
 *   program                       runs all of them, each by exec of itself
 *   program --together CASE...    runs these in one process, and in another from where one failed or died; the case that
 *                                 did is named. Exit 77: all were skipped
 *
 * A case is `static void name(void **state)`, and uses cmocka's assertions, on the thread that it was called on only.
 * The file ends with the list, without a semicolon:
 *
 *   CASES(CASE(reads_a_graph), CASE_LABELS(two_threads_share_a_model, "threads slow"), CASE_TWICE(runs_on_a_device))
 *
 * CASE_TWICE is on sim and, as NAME@opencl, on two devices of PoCL's, as NAME@vulkan on two of lavapipe's, and as
 * NAME@cuda on two of the driver's double (tests/fakes); accelerator.h says how a case is written for that. CASE_PEERS
 * is for what needs copies or events from one device to another of the same plugin, which vulkan does not offer.
 * CASE_GPUS is CASE_PEERS on HIP's double too, as NAME@rocm: that plugin is cuda's code over another driver, so cases
 * are chosen for it. CASE_ALL is CASE_TWICE with it.
 */
#ifndef HEDDLE_TESTS_CASES_H
#define HEDDLE_TESTS_CASES_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The build tree and the repository, as absolute paths. */
#ifndef HEDDLE_TEST_BUILD
#define HEDDLE_TEST_BUILD "."
#endif
#ifndef HEDDLE_TEST_SOURCE
#define HEDDLE_TEST_SOURCE "."
#endif

#include "accelerator.h"

#define CASES_SKIPPED 77

typedef struct test_case {
  const char *name;
  void (*run)(void **state);
  const char *labels, *accelerator;
} test_case;

#define CASE(name) \
  { #name, name, "", "sim" }
#define CASE_LABELS(name, labels) \
  { #name, name, labels, "sim" }
#define CASE_OPENCL(name) \
  { #name "@opencl", name, "opencl", "opencl" }
#define CASE_VULKAN(name) \
  { #name "@vulkan", name, "vulkan", "vulkan" }
#define CASE_CUDA(name) \
  { #name "@cuda", name, "cuda", "cuda" }
#define CASE_ROCM(name) \
  { #name "@rocm", name, "rocm", "rocm" }
#ifdef HEDDLE_TEST_OPENCL /* the plugin is part of the build */
#define CASES_OPENCL_TOO(name) , CASE_OPENCL(name)
#else
#define CASES_OPENCL_TOO(name)
#endif
#ifdef HEDDLE_TEST_VULKAN
#define CASES_VULKAN_TOO(name) , CASE_VULKAN(name)
#else
#define CASES_VULKAN_TOO(name)
#endif
#ifdef HEDDLE_TEST_CUDA
#define CASES_CUDA_TOO(name) , CASE_CUDA(name)
#else
#define CASES_CUDA_TOO(name)
#endif
#ifdef HEDDLE_TEST_ROCM
#define CASES_ROCM_TOO(name) , CASE_ROCM(name)
#else
#define CASES_ROCM_TOO(name)
#endif
#define CASE_TWICE(name) CASE(name) CASES_OPENCL_TOO(name) CASES_VULKAN_TOO(name) CASES_CUDA_TOO(name)
#define CASE_PEERS(name) CASE(name) CASES_OPENCL_TOO(name) CASES_CUDA_TOO(name)
#define CASE_ALL(name) CASE_TWICE(name) CASES_ROCM_TOO(name)
#define CASE_GPUS(name) CASE_PEERS(name) CASES_ROCM_TOO(name)
#define CASES(...) \
  int main(int argc, char **argv) { \
    static const test_case all[] = {__VA_ARGS__}; \
    return cases_main(argc, argv, all, sizeof all / sizeof all[0]); \
  }

/* Ends the case as skipped. The reason is printed and counted: .ci/report groups by it, so it names no number. */
#define SKIP(reason) \
  do { \
    printf("skipped: %s\n", (reason)); \
    cases_was_skipped = 1; \
    _skip(__FILE__, __LINE__); \
  } while (0)
#undef skip /* cmocka's own would end the case as passed */
#define skip() SKIP("no reason is given")

static volatile int cases_was_skipped;
static const test_case *cases_current;

/* cmocka catches the fatal signals, which hides them from sanitizers and from core dumps: what was set
 * before is put back while a case runs. */
static const int cases_signals[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
static struct sigaction cases_actions[sizeof cases_signals / sizeof cases_signals[0]];

static void cases_run_current(void **state) {
  for (size_t i = 0; i < sizeof cases_signals / sizeof cases_signals[0]; i++)
    sigaction(cases_signals[i], &cases_actions[i], NULL);
  accelerator = cases_current->accelerator;
  const char *lacks = accelerator_prepare(HEDDLE_TEST_BUILD);
  if (lacks != NULL) SKIP(lacks);
  cases_current->run(state);
}

/* A case that is for no accelerator meets no driver: each that is installed would be started wherever all plugins are asked
 * for, which takes time and brings their threads. A program with one in its name asks for it by itself. */
static void cases_leave_drivers(const char *program) {
  static const char *const drivers[] = {"opencl", "vulkan", "cuda", "rocm", "fakes"};
  for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
    if (strstr(program, drivers[i]) != NULL) return;
  if (getenv("HEDDLE_PLUGIN_PATH") != NULL) return;
  setenv("HEDDLE_PLUGINS",
         HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_cpu.so:" HEDDLE_TEST_BUILD
                           "/lib/heddle/plugins/libheddle_plugin_null.so:" HEDDLE_TEST_BUILD
                           "/lib/heddle/plugins/libheddle_plugin_sim.so",
         0);
}

static int cases_run_here(const test_case *one, const char *program) {
  const struct CMUnitTest test = {one->name, cases_run_current, NULL, NULL, NULL};
  for (size_t i = 0; i < sizeof cases_signals / sizeof cases_signals[0]; i++)
    sigaction(cases_signals[i], NULL, &cases_actions[i]);
  cases_current = one;
  cases_was_skipped = 0;
  if (strcmp(one->accelerator, "sim") == 0) cases_leave_drivers(program);
  setenv("HEDDLE_PLUGIN_PATH", HEDDLE_TEST_BUILD "/lib/heddle/plugins", 0);
  int failed = _cmocka_run_group_tests(one->name, &test, 1, NULL, NULL);
  fflush(stdout);
  if (failed != 0) return 1;
  return cases_was_skipped ? CASES_SKIPPED : 0;
}

static int cases_run_in_child(char *const *words) {
  extern char **environ;
  pid_t child;
  int status;
  if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ) != 0) return 1;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  if (WIFSIGNALED(status)) fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static const test_case *cases_find(const test_case *all, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(all[i].name, name) == 0) return &all[i];
  fprintf(stderr, "no case '%s'; --list prints those there are\n", name);
  return NULL;
}

/* Runs cases in this process until one fails, with the environment as it is now before each, and writes a byte a case to
 * the descriptor: that is how the caller knows which case a process died in. */
static int cases_run_several(const test_case *all, size_t count, int fd, char **argv, char *const *names) {
  extern char **environ;
  char **before = environ;
  size_t n = 0;
  while (before[n] != NULL) n++;
  char **mine = calloc(n + 1, sizeof *mine); /* setenv makes an array of its own and leaves this one */
  if (mine == NULL) return 1;
  char byte = 'p';
  for (; byte != 'f' && *names != NULL; names++) {
    memcpy(mine, before, n * sizeof *mine);
    environ = mine;
    const test_case *one = cases_find(all, count, *names);
    int status = one == NULL ? 1 : cases_run_here(one, argv[0]);
    byte = status == 0 ? 'p' : status == CASES_SKIPPED ? 's' : 'f';
    if (write(fd, &byte, 1) != 1) byte = 'f';
  }
  environ = before;
  free(mine);
  return byte == 'f';
}

static int cases_run_together(char **argv, int n_names) {
  char fd_text[16], **names = argv + 2;
  int done = 0, failed = 0, skipped = 0, ends[2];
  while (done < n_names) {
    int first = done, was_failed = failed;
    char byte = 0;
    if (pipe(ends) != 0) return 1;
    snprintf(fd_text, sizeof fd_text, "%d", ends[1]);
    char **words = calloc((size_t)(n_names - done) + 4, sizeof *words);
    if (words == NULL) return 1;
    words[0] = argv[0], words[1] = "--several", words[2] = fd_text;
    memcpy(words + 3, names + done, (size_t)(n_names - done) * sizeof *words);
    int status = cases_run_in_child(words);
    free(words);
    close(ends[1]);
    while (read(ends[0], &byte, 1) == 1) {
      done++;
      skipped += byte == 's';
      failed += byte == 'f';
      if (byte == 'f') printf("FAILED: %s\n", names[done - 1]);
    }
    close(ends[0]);
    if (status != 0 && failed == was_failed && done < n_names) {
      printf("DIED: %s\n", names[done]);
      done++, failed++;
    } else if (status != 0 && failed == was_failed) {
      printf("DIED: at its end, after %s\n", names[done - 1]);
      failed++;
    } else if (done == first) {
      return 1;
    }
  }
  printf("%d passed, %d failed, %d skipped\n", n_names - failed - skipped, failed, skipped);
  if (failed > 0) return 1;
  return skipped == n_names ? CASES_SKIPPED : 0;
}

static int cases_main(int argc, char **argv, const test_case *all, size_t count) {
  /* The test program is not in a prefix, so the plugins are not beside it; and a user's own configuration is not
   * part of a test. */
  setenv("HEDDLE_BUILD", HEDDLE_TEST_BUILD, 0);
  setenv("XDG_CONFIG_HOME", HEDDLE_TEST_BUILD "/tests/no-config", 1);
  setenv("HEDDLE_PROBE", "off", 0);     /* a process a plugin and test; the tests of probing switch it on */
  setenv("HEDDLE_ROUTES_TEST", "0", 0); /* calls are counted and timed here; the tests of the self-test ask for it */

  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < count; i++)
      printf("%s%s%s\n", all[i].name, all[i].labels[0] != '\0' ? " " : "", all[i].labels);
    return 0;
  }
  if (argc > 2 && strcmp(argv[1], "--together") == 0) return cases_run_together(argv, argc - 2);
  if (argc > 3 && strcmp(argv[1], "--several") == 0)
    return cases_run_several(all, count, atoi(argv[2]), argv, argv + 3);
  if (argc == 2) {
    const test_case *one = cases_find(all, count, argv[1]);
    return one == NULL ? 2 : cases_run_here(one, argv[0]);
  }
  if (argc > 2) {
    fprintf(stderr, "usage: %s [--list | CASE | --together CASE...]\n", argv[0]);
    return 2;
  }

  size_t failed = 0, skipped = 0;
  for (size_t i = 0; i < count; i++) {
    char name[256];
    char *words[] = {argv[0], name, NULL};
    int status = 1;
    if (snprintf(name, sizeof name, "%s", all[i].name) < (int)sizeof name) status = cases_run_in_child(words);
    if (status == CASES_SKIPPED) skipped++;
    else if (status != 0) failed++;
  }
  printf("%zu passed, %zu failed, %zu skipped\n", count - failed - skipped, failed, skipped);
  return failed != 0;
}

#endif
