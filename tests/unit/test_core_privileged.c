/* A privileged process (set-user-ID) ignores variables: the same case runs in an ordinary process, where they count, and in
 * a copy of this program that belongs to root and is started by another user, where they do not. */
#define _GNU_SOURCE /* environ */
#include <limits.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"
#include "core/config_file.h"
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

/* ---- which plugins it loads. A prefix of our own has a copy of this program that belongs to root, the plugins, and
 * heddle-probe; the program takes the configuration file beside it for the system's. */

static char prefix[64]; /* of the copy that runs, or of the one to be made */

const char *heddle__system_file(void) {
  static char path[128];
  char own[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  if (n < 0) return "/nowhere";
  own[n] = '\0';
  *strrchr(own, '/') = '\0';
  snprintf(path, sizeof path, "%.100s/config.json", own);
  return path;
}

static char last_lines[4096];

static void keep_line(void *user, int32_t level, const char *component, const char *text) {
  (void)user, (void)level;
  size_t n = strlen(last_lines);
  snprintf(last_lines + n, sizeof last_lines - n, "%s: %s\n", component, text);
}

/* What the copy does: prints what became of its plugins, and of the variables. */
static void shows_its_plugins(void **state) {
  (void)state;
  heddle_context *ctx;
  heddle_error err = {0, 0, ""};
  heddle_device *dev;
  size_t n = 0;
  const heddle_setting settings[] = {{"log", "info"}};
  if (heddle_context_create(settings, 1, keep_line, NULL, &ctx, &err) != HEDDLE_OK) {
    printf("no context: %s\n", err.text);
    return;
  }
  heddle_status s = heddle_context_select(ctx, NULL, &dev, 1, &n, NULL, &err);
  printf("%s: %zu %s\n", s == HEDDLE_OK ? "chosen" : "none", n, s == HEDDLE_OK ? heddle_device_name(dev) : err.text);
  for (size_t i = 0; i < heddle_context_plugin_count(ctx); i++) {
    heddle_plugin_info p = {.struct_size = sizeof p};
    assert_int_equal(heddle_context_plugin(ctx, i, &p, NULL), HEDDLE_OK);
    printf("%s %s: %s\n", p.used ? "loaded" : "refused", strrchr(p.path, '/') + 1, p.reason);
  }
  const char *marker = getenv("PROBE_MARKER"), *language = getenv("LANG");
  printf("PROBE_MARKER %s, LANG %s\n", marker != NULL ? marker : "-", language != NULL ? language : "-");
  printf("tried %d\n", strstr(last_lines, "probe: tries ") != NULL);
  heddle_context_release(ctx);
}

static void in_prefix(char out[256], const char *path) {
  snprintf(out, 256, "%s/%s", prefix, path);
}

static bool copy(const char *from_path, const char *to, mode_t mode) {
  char data[65536], path[256];
  in_prefix(path, to);
  FILE *from = fopen(from_path, "rb"), *out = fopen(path, "wb");
  bool good = from != NULL && out != NULL;
  for (size_t n; good && (n = fread(data, 1, sizeof data, from)) > 0;) good = fwrite(data, 1, n, out) == n;
  if (from != NULL) fclose(from);
  if (out != NULL) good = fclose(out) == 0 && good;
  return good && chmod(path, mode) == 0;
}

#define PLUGIN(name) HEDDLE_TEST_BUILD "/tests/plugins/libheddle_plugin_" name ".so"

static void make_prefix(void) {
  static const char *const folders[] = {"lib",     "lib/heddle",     "lib/heddle/plugins",
                                        "libexec", "libexec/heddle", "vendors"};
  char path[256];
  strcpy(prefix, "/tmp/heddle-privileged-XXXXXX");
  assert_non_null(mkdtemp(prefix));
  assert_int_equal(chmod(prefix, 0755), 0);
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    in_prefix(path, folders[i]);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, 0755), 0);
  }
  assert_true(copy("/proc/self/exe", "lib/program", 04755));
  assert_true(copy(HEDDLE_TEST_BUILD "/lib/libheddle.so.0", "lib/libheddle.so.0", 0644));
  assert_true(copy(HEDDLE_TEST_BUILD "/libexec/heddle/heddle-probe", "libexec/heddle/heddle-probe", 0755));
  assert_true(copy(PLUGIN("probe_obeys"), "lib/heddle/plugins/libheddle_plugin_probe_obeys.so", 0644));
}

static void remove_prefix(void) {
  char words[128];
  snprintf(words, sizeof words, "rm -rf %s", prefix);
  (void)!system(words);
}

static void configure(const char *text, mode_t mode) {
  char path[256];
  in_prefix(path, "lib/config.json");
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, mode), 0);
}

/* Whether a file is there; it is removed. */
static bool appeared(const char *name) {
  char path[256];
  in_prefix(path, name);
  return unlink(path) == 0;
}

/* Runs the copy as another user or as this one, and gives what it prints. */
static const char *run_copy(bool privileged) {
  static char words[16384];
  char path[256], marker[256], vendors[256];
  int ends[2], status = 0;
  size_t used = 0;
  in_prefix(path, "lib/program");
  in_prefix(marker, "marker");
  in_prefix(vendors, "vendors");
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    char *argv[] = {path, (char[]){"shows_its_plugins"}, NULL};
    unsetenv("HEDDLE_PROBE");
    unsetenv("HEDDLE_PLUGINS");
    setenv("HOME", "/nowhere", 1);
    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    setenv("LANG", "C.UTF-8", 1);
    setenv("PROBE_MARKER", marker, 1);
    setenv("OCL_ICD_VENDORS", vendors, 1);
    setenv("OPENCL_VENDOR_PATH", vendors, 1);
    dup2(ends[1], STDOUT_FILENO);
    if (!privileged || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0)) execv(path, argv);
    _exit(126);
  }
  close(ends[1]);
  for (ssize_t n; used + 1 < sizeof words && (n = read(ends[0], words + used, sizeof words - 1 - used)) > 0;)
    used += (size_t)n;
  words[used] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  return words;
}

static void expect(const char *words, const char *text) {
  if (strstr(words, text) == NULL) fail_msg("'%s' is not in:\n%s", text, words);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_WHERE_IMPOSSIBLE SKIP("a sanitizer's run time does not start in a privileged process")
#else
#define SKIP_WHERE_IMPOSSIBLE \
  if (geteuid() != 0) SKIP("only root can make a program of root's")
#endif
#define REFUSED "refused libheddle_plugin_probe_obeys.so: "

static void a_privileged_process_loads_what_the_administrator_lists(void **state) {
  (void)state;
  SKIP_WHERE_IMPOSSIBLE;
  char path[256], text[400];
  make_prefix();
  expect(run_copy(false), "loaded libheddle_plugin_probe_obeys.so"); /* an ordinary process: the variable is obeyed */
  assert_true(appeared("marker"));

  const char *words = run_copy(true);
  if (strstr(words, "loaded libheddle_plugin_probe_obeys.so") != NULL && strstr(words, "LANG C.UTF-8") != NULL &&
      strstr(words, "PROBE_MARKER -") == NULL && appeared("marker")) {
    remove_prefix();
    SKIP("the file system of /tmp gives programs no rights of their owners");
  }
  expect(words, "none: 0 no device is used by default");
  expect(words, REFUSED "this process has other rights than its caller");
  expect(words, "\"privileged.plugins\" in ");
  expect(words, "tried 0");
  assert_false(appeared("marker"));

  static const char *const others[] = {
      "{}", "{\"plugins\": \"/tmp\"}", "{\"privileged\": {\"plugins\": \"probe\"}}",
      "{\"privileged\": {\"plugins\": []}}",
      "{\"plugin_trust\": \"any\", \"privileged\": {\"plugins\": [\"probe_obeys2\"]}}"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    configure(others[i], 0644);
    words = run_copy(true);
    if (i != 1) expect(words, REFUSED "this process has other rights");
    assert_null(strstr(words, "loaded libheddle_plugin_probe_obeys.so:"));
    assert_false(appeared("marker"));
  }

  in_prefix(path, "lib/heddle/plugins/libheddle_plugin_probe_obeys.so");
  snprintf(text, sizeof text, "{\"privileged\": {\"plugins\": [\"cpu\", \"%s\"]}}", path);
  for (int i = 0; i < 2; i++) { /* by its name and by its path */
    configure(i == 0 ? "{\"privileged\": {\"plugins\": [\"cpu\", \"probe_obeys\"]}}" : text, 0644);
    words = run_copy(true);
    expect(words, "loaded libheddle_plugin_probe_obeys.so");
    expect(words, "tried 1");
    expect(words, "PROBE_MARKER -, LANG C.UTF-8");
    assert_false(appeared("marker")); /* in neither process */
  }

  configure("{\"privileged\": {\"plugins\": \"probe_obeys\"}}", 0666);
  expect(run_copy(true), "no context: configuration file '");
  configure("{\"privileged\": {\"plugins\": \"probe_obeys\"}}", 0644);
  in_prefix(text, "lib/config.json");
  assert_int_equal(chown(text, NOBODY, NOBODY), 0);
  expect(run_copy(true), "where root alone may write to it");
  assert_int_equal(chown(text, 0, 0), 0);

  assert_int_equal(chown(path, NOBODY, NOBODY), 0); /* the caller's own file */
  configure("{\"plugin_trust\": \"any\", \"privileged\": {\"plugins\": \"probe_obeys\"}}", 0644);
  expect(run_copy(true), "belongs to another user");
  assert_int_equal(chown(path, 0, 0), 0);

  in_prefix(path, "libexec/heddle/heddle-probe");
  assert_int_equal(unlink(path), 0);
  expect(run_copy(true), REFUSED "it could not be tried: there is no heddle-probe");
  remove_prefix();
}

/* ocl-icd opens the libraries that the files of the folder OCL_ICD_VENDORS name. */
static void a_listed_loader_does_not_obey_the_caller(void **state) {
  (void)state;
  SKIP_WHERE_IMPOSSIBLE;
#ifndef HEDDLE_TEST_OPENCL
  SKIP("the plugin opencl is not built");
#endif
  char path[256];
  make_prefix();
  assert_true(copy(HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_opencl.so",
                   "lib/heddle/plugins/libheddle_plugin_opencl.so", 0644));
  assert_true(copy(HEDDLE_TEST_BUILD "/tests/plugins/libattacker.so", "vendors/libattacker.so", 0644));
  in_prefix(path, "vendors/attacker.icd");
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "%s/vendors/libattacker.so\n", prefix);
  fclose(f);
  (void)run_copy(false);
  bool obeyed = appeared("vendors/libattacker.so.opened");
  (void)run_copy(true);
  assert_false(appeared("vendors/libattacker.so.opened"));
  configure("{\"privileged\": {\"plugins\": [\"opencl\"]}}", 0644);
  expect(run_copy(true), "PROBE_MARKER -");
  assert_false(appeared("vendors/libattacker.so.opened"));
  remove_prefix();
  if (!obeyed) SKIP("this OpenCL loader reads no such variable");
}

CASES(CASE(variables_count_unless_it_is_privileged), CASE(a_privileged_process_ignores_variables),
      CASE(shows_its_plugins), CASE(a_privileged_process_loads_what_the_administrator_lists),
      CASE(a_listed_loader_does_not_obey_the_caller))
