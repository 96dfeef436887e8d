/* Configuration: what wins, where it came from, and what malformed files get. */
#include <locale.h>
#include <unistd.h>

#include "cases.h"
#include "core/alloc.h"
#include "core/config.h"
#include "core/context.h"

static char folder[] = "/tmp/heddle-config-XXXXXX";
static char file[128];

static void write_file(const char *text) {
  if (file[0] == '\0') {
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/config.json", folder);
  }
  FILE *f = fopen(file, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  setenv("HEDDLE_CONFIG", file, 1);
}

static void clean(void) {
  unlink(file);
  rmdir(folder);
}

static void expect(const heddle__config *c, const char *key, const char *value, const char *origin) {
  const char *v = NULL, *o = NULL;
  assert_true(heddle__config_get(c, key, &v, &o));
  assert_string_equal(v, value);
  assert_string_equal(o, origin);
}

static void the_strongest_source_wins(void **state) {
  (void)state;
  heddle__config *c;
  heddle_error err;
  const char *v;
  write_file(
      "{\"devices\": [\"sim:0\", \"cpu\"], \"sim\": {\"delay_us\": 5, \"seed\": 7, \"views\": true, \"rate\": 0.5},"
      " \"log\": null, \"plugin_path\": [\"/a\", \"/b\"]}");
  setenv("HEDDLE_SIM_SEED", "8", 1);
  setenv("HEDDLE_SIM_DELAY_US", "6", 1);
  setenv("HEDDLE_EMPTY", "", 1);
  unsetenv("HEDDLE_PLUGIN_PATH");
  const heddle_setting settings[] = {{"sim.delay_us", "4"}, {"sim.delay_us", "3"}};
  assert_int_equal(heddle__config_create(settings, 2, &c, &err), HEDDLE_OK);
  expect(c, "sim.delay_us", "3", "call");
  expect(c, "sim.seed", "8", "HEDDLE_SIM_SEED");
  expect(c, "sim.views", "1", file);
  expect(c, "sim.rate", "0.5", file);
  expect(c, "devices", "sim:0,cpu", file);
  expect(c, "plugin_path", "/a:/b", file);
  expect(c, "log", "warn", "default");
  assert_false(heddle__config_get(c, "empty", &v, NULL));
  heddle__config_release(c);
  assert_int_equal(heddle__alloc_live(), 0);
  clean();
}

typedef struct seen {
  char text[256];
} seen;

static heddle_status note(void *user, const char *rest, const char *value, heddle_error *err) {
  seen *s = user;
  (void)err;
  strcat(strcat(strcat(strcat(s->text, rest), "="), value), ";");
  return HEDDLE_OK;
}

static void keys_under_a_prefix(void **state) {
  (void)state;
  heddle__config *c;
  seen s = {""};
  write_file("{\"sim\": {\"1\": {\"fail\": \"x\", \"memory\": 5}, \"10\": {\"fail\": \"no\"}}}");
  setenv("HEDDLE_SIM_1_FAIL", "y", 1);
  const heddle_setting settings[] = {{"sim.1.memory", "9"}};
  assert_int_equal(heddle__config_create(settings, 1, &c, NULL), HEDDLE_OK);
  assert_int_equal(heddle__config_each(c, "sim.1.", note, &s, NULL), HEDDLE_OK);
  assert_string_equal(s.text, "memory=9;fail=y;");
  heddle__config_release(c);
  clean();
}

static void bad_files(void **state) {
  (void)state;
  static const struct {
    const char *text;
    heddle_status status;
    const char *word;
  } all[] = {
      {"{\"a\": 1,\n\n  oops}", HEDDLE_EFORMAT, ":3:"},
      {"", HEDDLE_EFORMAT, "config.json:1"},
      {"[1]", HEDDLE_EFORMAT, "expected an object"},
      {"{\"a\": 1, \"a\": 2}", HEDDLE_EFORMAT, "duplicate"},
      {"{\"a\": [[1]]}", HEDDLE_EFORMAT, "key 'a'"},
      {"{\"\": 1}", HEDDLE_EFORMAT, "empty"},
      {"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}", HEDDLE_ELIMIT, "deeper"},
      {"{\"a\": \"x\\u0000y\"}", HEDDLE_EFORMAT, ""},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    heddle__config *c = NULL;
    heddle_error err = {0, 0, ""};
    write_file(all[i].text);
    assert_int_equal(heddle__config_create(NULL, 0, &c, &err), all[i].status);
    assert_non_null(strstr(err.text, "config.json"));
    if (strstr(err.text, all[i].word) == NULL) fail_msg("case %zu: '%s' lacks '%s'", i, err.text, all[i].word);
    assert_int_equal(heddle__alloc_live(), 0);
  }
  clean();
  heddle_error err;
  heddle__config *c;
  assert_int_equal(heddle__config_create(NULL, 0, &c, &err), HEDDLE_EIO); /* it was named, and is not there */
  setenv("HEDDLE_CONFIG", "off", 1);
  assert_int_equal(heddle__config_create(NULL, 0, &c, &err), HEDDLE_OK);
  heddle__config_release(c);
}

static void bad_settings(void **state) {
  (void)state;
  heddle__config *c;
  heddle_error err;
  const heddle_setting bad[] = {{"Devices", "cpu"}, {NULL, "x"}, {"a", NULL}, {".a", "x"}};
  for (size_t i = 0; i < 4; i++) assert_int_equal(heddle__config_create(&bad[i], 1, &c, &err), HEDDLE_EINVAL);
  heddle_context *ctx;
  const heddle_setting log[] = {{"plugins", "off"}, {"log", "loud"}};
  assert_int_equal(heddle_context_create(log, 2, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "loud"));
  const heddle_setting threads[] = {{"plugins", "off"}, {"threads", "many"}};
  assert_int_equal(heddle_context_create(threads, 2, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "threads"));
  const heddle_setting spin[] = {{"plugins", "off"}, {"spin_us", "1000000"}};
  assert_int_equal(heddle_context_create(spin, 2, NULL, NULL, &ctx, &err), HEDDLE_EINVAL);
  assert_non_null(strstr(err.text, "spin_us"));
  assert_int_equal(heddle__alloc_live(), 0);
}

static void numbers(void **state) {
  (void)state;
  heddle_context *ctx;
  heddle_error err;
  int64_t n = 0;
  const heddle_setting all[] = {{"plugins", "0"}, {"a", "-5"},  {"b", "12x"}, {"c", "9999999999999999999999"},
                                {"d", "off"},     {"e", "100"}, {"f", ""},    {"g", "-"}};
  assert_int_equal(heddle_context_create(all, 8, NULL, NULL, &ctx, &err), HEDDLE_OK);
  assert_int_equal(heddle__context_number(ctx, "a", 1, -10, 10, &n, &err), HEDDLE_OK);
  assert_int_equal(n, -5);
  assert_int_equal(heddle__context_number(ctx, "d", 1, 0, 10, &n, &err), HEDDLE_OK);
  assert_int_equal(n, 0);
  assert_int_equal(heddle__context_number(ctx, "unset", 7, 0, 10, &n, &err), HEDDLE_OK);
  assert_int_equal(n, 7);
  for (const char *const *k = (const char *const[]){"b", "c", "e", "f", "g", NULL}; *k != NULL; k++)
    assert_int_equal(heddle__context_number(ctx, *k, 1, 0, 10, &n, &err), HEDDLE_EINVAL);
  heddle_context_release(ctx);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void a_comma_locale_changes_nothing(void **state) {
  (void)state;
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
    SKIP("no locale with a decimal comma");
  heddle__config *c;
  write_file("{\"sim\": {\"rate\": 0.5}}");
  assert_int_equal(heddle__config_create(NULL, 0, &c, NULL), HEDDLE_OK);
  expect(c, "sim.rate", "0.5", file);
  heddle__config_release(c);
  clean();
}

CASES(CASE(the_strongest_source_wins), CASE(keys_under_a_prefix), CASE(bad_files), CASE(bad_settings), CASE(numbers),
      CASE(a_comma_locale_changes_nothing))
