/* tests/stress/exit_program.c: ends while everything of Heddle's is alive: contexts, models, executors and pending runs.
 * The first word says how, the second on which accelerator; exit status 0 is right, any output or another status is
 * not. */
#include <pthread.h>
#include <stdlib.h>

#include "job.h"

/* Reachable until the very end, as they would be in an application that does not tidy up. */
static heddle_context *contexts[2];
static job jobs[3];
static heddle_executor *spare;

static void must(heddle_status s, const heddle_error *err) {
  if (s == HEDDLE_OK) return;
  fprintf(stderr, "exit_program: %s\n", err->text);
  _Exit(1);
}

/* One run is done, and one is pending on devices that are slow (or where hang is given, hang at that command). */
static void make_all(const char *delay_us, const char *hang) {
  heddle_error err;
  heddle_setting settings[3] = {{"log", "off"}, {"sim.0.hang", hang}};
  size_t n = 1 + (hang != NULL ? 1 : job_delay(settings + 1, delay_us));
  must(heddle_context_create(settings, n, NULL, NULL, &contexts[0], &err), &err);
  must(heddle_context_create(settings, 1, NULL, NULL, &contexts[1], &err), &err);
  for (int i = 0; i < 3; i++) {
    must(job_model(contexts[i % 2], &jobs[i], NULL, 0, &err), &err);
    must(job_executor(&jobs[i], (float)i, &err), &err);
  }
  must(heddle_executor_create(jobs[0].model, &spare, &err), &err);
  must(job_run(&jobs[1], &err), &err);
  must(heddle_executor_start(jobs[0].executor, &err), &err);
  must(heddle_executor_start(jobs[2].executor, &err), &err);
}

static void *exits(void *arg) {
  make_all("200000", NULL);
  (void)arg;
  exit(0);
}

static void *makes(void *arg) {
  make_all("200000", NULL);
  (void)arg;
  return NULL;
}

static void *exits_later(void *arg) {
  (void)arg;
  job_sleep_ms(50);
  exit(0);
}

static pthread_t start(void *(*body)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, NULL) == 0) return thread;
  fprintf(stderr, "exit_program: no thread\n");
  _Exit(1);
}

int main(int argc, char **argv) {
  const char *how = argc == 3 ? argv[1] : "";
  heddle_error err;
  if (argc == 3) accelerator = argv[2];
  if (strcmp(how, "return") == 0) {
    make_all("200000", NULL);
    return 0;
  }
  if (strcmp(how, "exit") == 0) {
    make_all("200000", NULL);
    exit(0);
  }
  if (strcmp(how, "hung") == 0) { /* a completion that never comes */
    make_all(NULL, "20");
    heddle_status s = HEDDLE_OK;
    for (int i = 0; i < 60 && s != HEDDLE_ETIMEOUT; i++) { /* it may hit either of the two that share the device */
      heddle_executor *ex = jobs[i % 2 * 2].executor;
      s = heddle_executor_wait(ex, JOB_SECOND / 10, &err);
      if (s == HEDDLE_OK) s = heddle_executor_run(ex, JOB_SECOND / 10, &err);
    }
    return s == HEDDLE_ETIMEOUT ? 0 : 1;
  }
  if (strcmp(how, "thread") == 0) { /* all is made, and exit called, in another thread, while this one waits */
    pthread_join(start(exits), NULL);
    return 1;
  }
  if (strcmp(how, "thread-gone") == 0) { /* made in a thread that has ended */
    pthread_join(start(makes), NULL);
    return 0;
  }
  if (strcmp(how, "waiting") == 0) { /* exit in a thread while this one is in the middle of runs */
    make_all("20000", NULL);
    start(exits_later);
    for (;;) heddle_executor_run(jobs[1].executor, HEDDLE_FOREVER, &err);
  }
  if (strcmp(how, "main-gone") == 0) { /* the main thread ends first; its dlerror would be glibc's leak */
    pthread_join(start(makes), NULL);
    start(exits_later);
    pthread_exit(NULL);
  }
  fprintf(stderr, "exit_program: unknown word '%s'\n", how);
  return 2;
}
