/* Text that grows, and memory that is taken piece by piece: what is in them, and what a failed allocation leaves. */
#include "cases.h"

#include "core/alloc.h"
#include "core/arena.h"
#include "core/sheet.h"

static void strings_are_escaped(void **state) {
  (void)state;
  heddle__sheet s = {0};
  heddle__say_string(&s, "a\"b\\c\b\f\n\r\t\x01\x7f\xc3\xa9");
  assert_string_equal(s.text, "\"a\\\"b\\\\c\\b\\f\\n\\r\\t\\u0001\x7f\xc3\xa9\"");
  heddle__free(s.text);
}

static void parts_stand_behind_each_other(void **state) {
  (void)state;
  heddle__sheet s = {0};
  heddle__say_text(&s, "a\x1b");           /* unchanged */
  heddle__say(&s, "%s %d", "\x1b[0m", -7); /* cleaned */
  heddle__say_int(&s, INT64_MIN);
  heddle__say_us(&s, 1234005);
  heddle__say_us(&s, 7);
  heddle__say_bytes(&s, "", 0);
  assert_string_equal(s.text, "a\x1b?[0m -7-92233720368547758081234.0050.007");
  assert_int_equal(s.used, strlen(s.text));
  for (int i = 0; i < 10000; i++) heddle__say(&s, "%04d", i);
  assert_int_equal(s.used, strlen(s.text));
  assert_string_equal(s.text + s.used - 8, "99989999");
  heddle__free(s.text);
}

static void a_failure_stays(void **state) {
  (void)state;
  heddle__sheet s = {0};
  heddle__say_text(&s, "kept");
  heddle__alloc_fail_at(1);
  for (int i = 0; i < 2000; i++) heddle__say_text(&s, "0123456789");
  heddle__alloc_fail_at(0);
  assert_true(s.failed);
  const size_t used = s.used;
  heddle__say_text(&s, "more");
  assert_int_equal(s.used, used);
  assert_int_equal(strlen(s.text), used);
  heddle__free(s.text);
}

static heddle__arena arena;

static const char *formatted(const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = heddle__arena_format(&arena, format, args);
  va_end(args);
  return text;
}

static void pieces_are_apart_aligned_and_zeroed(void **state) {
  (void)state;
  unsigned char *pieces[300];
  const size_t live = heddle__alloc_live();
  arena = (heddle__arena){0};
  for (size_t i = 0; i < 300; i++) { /* some larger than a block */
    const size_t bytes = i % 50 == 49 ? 100000 : i * 7;
    pieces[i] = heddle__arena_take(&arena, bytes, 1);
    assert_non_null(pieces[i]);
    assert_int_equal((uintptr_t)pieces[i] % 16, 0);
    for (size_t k = 0; k < bytes; k++) assert_int_equal(pieces[i][k], 0);
    memset(pieces[i], (int)(i % 255 + 1), bytes);
  }
  for (size_t i = 1; i < 300; i++) assert_int_equal(pieces[i][0], i % 255 + 1);
  assert_string_equal(formatted("%s-%d", "x", 3), "x-3");
  assert_null(heddle__arena_take(&arena, SIZE_MAX, 2));
  heddle__arena_drop(&arena);
  assert_int_equal(heddle__alloc_live(), live);
}

static void a_limit_holds(void **state) {
  (void)state;
  arena = (heddle__arena){.limit = 200000};
  assert_non_null(heddle__arena_take(&arena, 1, 100000));
  assert_false(arena.is_out);
  assert_null(heddle__arena_take(&arena, 1, 100001));
  assert_true(arena.is_over && arena.is_out);
  assert_non_null(heddle__arena_take(&arena, 1, 20)); /* what fits is still given */
  heddle__arena_drop(&arena);
  arena = (heddle__arena){0};
  heddle__alloc_fail_at(1);
  assert_null(heddle__arena_take(&arena, 1, 20));
  assert_true(arena.is_out && !arena.is_over);
  heddle__arena_drop(&arena);
}

CASES(CASE(strings_are_escaped), CASE(parts_stand_behind_each_other), CASE(a_failure_stays),
      CASE(pieces_are_apart_aligned_and_zeroed), CASE(a_limit_holds))
