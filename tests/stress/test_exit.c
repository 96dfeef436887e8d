/* tests/stress/test_exit.c: a program that ends without giving anything back ends at once, with its own status and
 * without a word, whichever thread ends it and whatever is still running.
 * labels: threads
 */
#include <fcntl.h>
#include <unistd.h>

#include "cases.h"

#include "job.h"

extern char **environ;

static void ends_well(const char *how) {
  char output[] = HEDDLE_TEST_BUILD "/tests/exit-XXXXXX", text[2000], word[32];
  char program[] = HEDDLE_TEST_BUILD "/tests/exit_program";
  char device[16];
  char *argv[] = {program, word, device, NULL};
  snprintf(word, sizeof word, "%s", how);
  snprintf(device, sizeof device, "%s", accelerator);
  int file = mkstemp(output), status = 0;
  assert_true(file >= 0);
  unlink(output);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file, 1);
  posix_spawn_file_actions_adddup2(&actions, file, 2);
  pid_t child;
  uint64_t start = job_now();
  assert_int_equal(posix_spawn(&child, program, &actions, NULL, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  pid_t ended = 0;
  while (ended == 0 && job_now() - start < 5 * JOB_SECOND) {
    ended = waitpid(child, &status, WNOHANG);
    if (ended == 0) job_sleep_ms(5);
  }
  if (ended == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  ssize_t n = pread(file, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = '\0';
  close(file);
  if (ended == 0) fail_msg("'%s' had not ended after 5 seconds: %s", how, text);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("'%s' ended with %#x: %s", how, (unsigned)status, text);
  if (n != 0) fail_msg("'%s' printed: %s", how, text);
}

#define ENDS(name, how) \
  static void name(void **state) { \
    (void)state; \
    for (int i = 0; i < 3; i++) ends_well(how); \
  }

ENDS(returns_from_main, "return")
ENDS(calls_exit, "exit")
ENDS(with_a_hung_stream, "hung")
ENDS(from_a_second_thread, "thread")
ENDS(after_the_thread_that_made_it, "thread-gone")
ENDS(while_another_thread_runs, "waiting")
ENDS(after_the_main_thread, "main-gone")

CASES(CASE_TWICE(returns_from_main), CASE_TWICE(calls_exit), CASE(with_a_hung_stream), CASE_TWICE(from_a_second_thread),
      CASE_TWICE(after_the_thread_that_made_it), CASE_TWICE(while_another_thread_runs),
      CASE_TWICE(after_the_main_thread))
