/* labels: vulkan
 * timeout: 300
 * Of the vulkan plugin: fences behind work that was handed over before, captures that are freed under way, and the file in
 * which the validation layer's messages are kept. */
#include "vulkan_host.h"

/* A fence adds no work, and is reported when the work before it is done. */
static void a_fence_behind_what_was_handed_over(void **state) {
  enum { BYTES = 1 << 27 };
  (void)state;
  for (int timeline = 0; timeline < 2; timeline++) {
    sim_test t;
    vulkan_open(&t, 1, "timeline", timeline ? "1" : "0", NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, BYTES);
    for (uint32_t round = 1; round <= 3; round++) {
      for (uint32_t i = 0; i < 5; i++) sim_fill(&t, s, b, BYTES, round);
      OK(&t, t.p->stream->submit(s, &t.err));
      FAILS(&t, HEDDLE_EBUSY, "work left", t.p->stream->query(s, &t.err));
      for (uint32_t f = 1; f <= 3; f++) OK(&t, t.p->fence->signal(s, f, round, &t.err));
      for (uint32_t f = 1; f <= 3; f++) assert_int_equal(sim_wait(&t, f, round), HEDDLE_OK);
      OK(&t, t.p->stream->query(s, &t.err));
    }
    sim_expect(&t, s, b, 1024, 3);
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(s);
    vulkan_close(&t);
  }
}

/* The layer's messages are lines of a file, one behind the other, and of several instances. */
static void messages_are_kept_in_a_file(void **state) {
  char path[] = "/tmp/heddle_validate_XXXXXX", text[8192] = "";
  (void)state;
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  for (int round = 1; round <= 2; round++) {
    sim_test t;
    vulkan_open(&t, 1, "validate_log", path, NULL);
    heddle_pstream *s = sim_stream(&t, t.dev[0]);
    heddle_pbuffer *b = sim_buf(&t, t.dev[0], HEDDLE_MEMORY_DEVICE, 1024);
    const bool layer = t.n_settings == 2;
    OK(&t, t.p->copy->d2d(s, b, 16, b, 0, 256, &t.err)); /* against the rules, and only recorded */
    t.p->memory->free(t.dev[0], b);
    t.p->stream->close(s);
    (sim_close)(&t);
    if (!layer) unlink(path);
    if (!layer) SKIP("the validation layer is not installed");
    int lines = 0;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) lines++;
    assert_int_equal(lines, round * (int)t.errors_logged);
    assert_non_null(strstr(text, "vkCmdCopyBuffer"));
  }
  close(fd);
  unlink(path);
}

static void a_file_of_messages_must_open(void **state) {
  static const char *const wrong[] = {"here.log", "/nonexistent/folder/file"};
  (void)state;
  vulkan_environment();
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    sim_test t;
    sim_enter(&t, "validate_log", wrong[i], NULL);
    FAILS(&t, i == 0 ? HEDDLE_EINVAL : HEDDLE_EIO, "validate_log", t.p->open_instance(&t.fake.table, &t.self, &t.err));
    assert_int_equal(atomic_load(&t.fake.live), 0);
  }
}

CASES(CASE(a_fence_behind_what_was_handed_over), CASE(messages_are_kept_in_a_file), CASE(a_file_of_messages_must_open))
