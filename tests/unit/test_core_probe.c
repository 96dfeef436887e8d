/* Probing by the library's own calls: contexts of several threads at once, and memory that runs out anywhere.
 * labels: threads
 * timeout: 300 */
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "cases.h"
#include "core/alloc.h"
#include "heddle/heddle.h"

#define SIM HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_sim.so"

enum { THREADS = 4 };

static char folder[] = "/tmp/heddle-probe-XXXXXX";

static heddle_status create(heddle_context **out, heddle_error *err) {
  const heddle_setting settings[] = {
      {"plugins", SIM}, {"log", "error"}, {"probe", "on"}, {"probe.cache_dir", folder}, {"sim.devices", "2"}};
  return heddle_context_create(settings, 5, NULL, NULL, out, err);
}

/* How many records there are, which are removed. */
static int empty_folder(void) {
  int n = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unlink(path);
    n++;
  }
  if (dir != NULL) closedir(dir);
  return n;
}

static void *use_context(void *user) {
  size_t *count = user;
  heddle_context *ctx;
  heddle_error err;
  if (create(&ctx, &err) != HEDDLE_OK) return NULL;
  *count = heddle_context_device_count(ctx);
  heddle_context_release(ctx);
  return NULL;
}

static void threads_may_try_at_once(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  size_t counts[THREADS] = {0};
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_context, &counts[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(counts[i], 2);
  assert_int_equal(empty_folder(), 1);
  rmdir(folder);
}

static void memory_may_run_out_anywhere(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  bool through = false;
  for (uint64_t n = 1; n < 400 && !through; n++) {
    heddle_context *ctx = NULL;
    heddle_device *dev;
    heddle_error err;
    heddle__alloc_fail_at(n);
    heddle_status s = create(&ctx, &err);
    if (s == HEDDLE_OK) s = heddle_context_find_device(ctx, "sim:1", &dev, &err);
    if (s != HEDDLE_OK) assert_int_equal(s, HEDDLE_ENOMEM);
    through = s == HEDDLE_OK && n > 40;
    heddle__alloc_fail_at(0);
    heddle_context_release(ctx);
    if (heddle__alloc_live() != 0)
      fail_msg("allocation %u failed, and %zu blocks were lost", (unsigned)n, heddle__alloc_live());
  }
  assert_true(through);
  assert_int_equal(empty_folder(), 1);
  rmdir(folder);
}

CASES(CASE(threads_may_try_at_once), CASE(memory_may_run_out_anywhere))
