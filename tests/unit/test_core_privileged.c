/* A privileged process (set-user-ID) ignores variables: the same case runs in an ordinary process, where they count, and in
 * a copy of this program that belongs to root and is started by somebody else, where they do not. */
#define _GNU_SOURCE /* environ */
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"
#include "core/registry.h"

enum { NOBODY = 65534 };

static const char *setting(heddle_context *ctx, const char *key) {
  const char *value;
  return heddle_context_setting(ctx, key, &value, NULL, NULL) == HEDDLE_OK ? value : "";
}

/* What main() set is there in both. */
static void variables_count_unless_it_is_privileged(void **state) {
  (void)state;
  const bool privileged = getauxval(AT_SECURE) != 0;
  const heddle_setting none[] = {{"config", "off"}};
  heddle_context *ctx;
  heddle_error err;
  setenv("HEDDLE_LOG", "off", 1);
  setenv("HEDDLE_PLUGINS", "/nowhere/libheddle_plugin_x.so", 1);
  setenv("HEDDLE_PLUGIN_TRUST", "any", 1);
  setenv("XDG_CACHE_HOME", "/tmp/heddle-privileged", 1);
  setenv("HOME", "/tmp/heddle-privileged", 1);
  assert_int_equal(heddle_context_create(none, 1, NULL, NULL, &ctx, &err), HEDDLE_OK);
  assert_string_equal(setting(ctx, "plugins"), privileged ? "" : "/nowhere/libheddle_plugin_x.so");
  assert_string_equal(setting(ctx, "plugin_trust"), privileged ? "" : "any");
  assert_string_equal(setting(ctx, "log"), privileged ? "warn" : "off");
  const char *const folders[] = {"probe", "weights", "routes", "place"};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    char key[64], value[128];
    snprintf(key, sizeof key, "%s.cache_dir", folders[i]);
    snprintf(value, sizeof value, "/tmp/heddle-privileged/heddle/%s", folders[i]);
    assert_string_equal(setting(ctx, key), privileged ? "" : value);
  }
  heddle_context_release(ctx);
  if (privileged) printf("privileged\n");
}

static bool copy_program(const char *path) {
  char data[65536];
  FILE *from = fopen("/proc/self/exe", "rb"), *to = fopen(path, "wb");
  bool good = from != NULL && to != NULL;
  for (size_t n; good && (n = fread(data, 1, sizeof data, from)) > 0;) good = fwrite(data, 1, n, to) == n;
  if (from != NULL) fclose(from);
  if (to != NULL) good = fclose(to) == 0 && good;
  return good && chmod(path, 04755) == 0;
}

static void a_privileged_process_ignores_variables(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("a sanitizer's run time does not start in a privileged process");
#endif
  if (geteuid() != 0) SKIP("only root can make a program of root's");
  char folder[] = "/tmp/heddle-privileged-XXXXXX", path[128], words[256] = "";
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chmod(folder, 0755), 0);
  snprintf(path, sizeof path, "%s/program", folder);
  bool copied = copy_program(path);
  int ends[2], status = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = copied ? fork() : -1; /* no device was opened */
  if (child == 0) {
    char *argv[] = {path, (char[]){"variables_count_unless_it_is_privileged"}, NULL};
    dup2(ends[1], STDOUT_FILENO);
    if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0) execv(path, argv);
    _exit(126);
  }
  close(ends[1]);
  for (size_t used = 0; used + 1 < sizeof words;) {
    ssize_t n = read(ends[0], words + used, sizeof words - 1 - used);
    if (n <= 0) break;
    used += (size_t)n;
  }
  close(ends[0]);
  if (child > 0) assert_int_equal(waitpid(child, &status, 0), child);
  unlink(path);
  rmdir(folder);
  if (!copied || (WIFEXITED(status) && WEXITSTATUS(status) == 126)) SKIP("no program of root's can be made or started");
  bool privileged = strstr(words, "privileged\n") != NULL;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !privileged)
    SKIP("the file system of /tmp gives programs no rights of their owners");
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_true(privileged);
}

CASES(CASE(variables_count_unless_it_is_privileged), CASE(a_privileged_process_ignores_variables))
