/* The members of an error: rank, device, node and operand beside its text. */
#include <stddef.h>
#include <string.h>

#include "cases.h"
#include "core/failure.h"
#include "heddle/heddle.h"

_Static_assert(sizeof(heddle_failure) == 4 * sizeof(uint32_t) + 64 + 128, "heddle_failure has padding");

static heddle_failure failure_of(const heddle_error *err, heddle_status expected) {
  heddle_failure f;
  memset(&f, 0x55, sizeof f);
  f.struct_size = sizeof f;
  assert_int_equal(heddle_error_failure(err, &f), expected);
  assert_int_equal(f.struct_size, sizeof f);
  return f;
}

static void assert_none(const heddle_error *err) {
  const heddle_failure f = failure_of(err, HEDDLE_ENOTFOUND);
  assert_int_equal(f.node, -1);
  assert_int_equal(f.operand, -1);
  assert_int_equal(f.rank, -1);
  assert_string_equal(f.device, "");
  assert_string_equal(f.node_name, "");
  if (err != NULL) assert_null(heddle__failed_device(err));
  if (err != NULL) assert_null(heddle__failed_node(err));
}

/* An error whose bytes are no zeros, as a caller's on the stack. */
static heddle_error used(void) {
  heddle_error err;
  memset(&err, 0xA5, sizeof err);
  return err;
}

static void members_are_set(void **state) {
  (void)state;
  heddle_error err = used();
  assert_int_equal(heddle__fail_on("sim:1", &err, HEDDLE_EFAILED, "it failed (%d)", 3), HEDDLE_EFAILED);
  assert_int_equal(heddle__at_operand(heddle__at_node(HEDDLE_EFAILED, &err, 7, "conv1"), &err, 2), HEDDLE_EFAILED);
  assert_string_equal(err.text, "it failed (3)");
  const heddle_failure f = failure_of(&err, HEDDLE_OK);
  assert_string_equal(f.device, "sim:1");
  assert_string_equal(f.node_name, "conv1");
  assert_int_equal(f.node, 7);
  assert_int_equal(f.operand, 2);
  assert_int_equal(f.rank, -1);
  assert_int_equal(heddle__failed_rank(&err), -1);
  assert_string_equal(heddle__failed_device(&err), "sim:1");
  assert_string_equal(heddle__failed_node(&err), "conv1");
}

static void a_rank_alone_is_known(void **state) {
  (void)state;
  heddle_error err = used();
  heddle__fail(&err, HEDDLE_EDEVICE, "it is silent");
  assert_int_equal(heddle__failed_rank(&err), -1);
  assert_int_equal(heddle__at_rank(HEDDLE_EDEVICE, &err, 0), HEDDLE_EDEVICE);
  heddle__at_rank(HEDDLE_EDEVICE, &err, 3);
  heddle__prefix(&err, HEDDLE_EDEVICE, "a run: ");
  assert_int_equal(heddle__failed_rank(&err), 0);
  assert_int_equal(failure_of(&err, HEDDLE_OK).rank, 0);
  /* A program of a version without the member. */
  struct old {
    uint32_t struct_size;
    char rest[2 * sizeof(int32_t) + 64 + 128];
    int32_t behind;
  } old = {.struct_size = offsetof(struct old, behind), .behind = 77};
  assert_int_equal(heddle_error_failure(&err, (heddle_failure *)(void *)&old), HEDDLE_OK);
  assert_int_equal(old.behind, 77);
  assert_int_equal(old.struct_size, offsetof(struct old, behind));
}

static void the_first_stays(void **state) {
  (void)state;
  heddle_error err = used();
  heddle__fail_on("sim:1", &err, HEDDLE_EFAILED, "it failed");
  heddle__at_node(HEDDLE_EFAILED, &err, 7, "inner");
  heddle__at_operand(HEDDLE_EFAILED, &err, 1);
  heddle__at_device(HEDDLE_EFAILED, &err, "cpu:0");
  heddle__at_node(HEDDLE_EFAILED, &err, 8, "outer");
  heddle__at_operand(HEDDLE_EFAILED, &err, 2);
  heddle__at_node(HEDDLE_OK, &err, 9, "none"); /* what succeeded names nothing */
  const heddle_failure f = failure_of(&err, HEDDLE_OK);
  assert_string_equal(f.device, "sim:1");
  assert_string_equal(f.node_name, "inner");
  assert_int_equal(f.node, 7);
  assert_int_equal(f.operand, 1);
}

static void a_prefix_keeps_members(void **state) {
  (void)state;
  heddle_error err = used();
  heddle__fail_on("sim:1", &err, HEDDLE_EFAILED, "it failed");
  heddle__prefix(&err, HEDDLE_EDEVICE, "node '%s': ", "conv1");
  heddle__prefix_on("cpu:0", &err, HEDDLE_EDEVICE, "m.json: ");
  assert_string_equal(err.text, "m.json: node 'conv1': it failed");
  assert_string_equal(failure_of(&err, HEDDLE_OK).device, "sim:1");
  heddle__unprefix(&err, "other: ");
  heddle__unprefix(&err, "m.json: ");
  assert_string_equal(err.text, "node 'conv1': it failed");
  assert_string_equal(failure_of(&err, HEDDLE_OK).device, "sim:1");
  heddle_error copy = err, other = used();
  heddle__fail(&other, HEDDLE_EFAILED, "other words");
  heddle__copy_members(&other, &copy); /* none: the old ones stay */
  assert_string_equal(failure_of(&copy, HEDDLE_OK).device, "sim:1");
  heddle__copy_members(&copy, &other);
  assert_string_equal(other.text, "other words");
  assert_string_equal(failure_of(&other, HEDDLE_OK).device, "sim:1");
  assert_string_equal(failure_of(&copy, HEDDLE_OK).device, "sim:1");
}

static void a_text_with_members_is_cut(void **state) {
  (void)state;
  char text[1000];
  heddle_error err = used();
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  heddle__fail(&err, HEDDLE_EFAILED, "%s", text);
  assert_int_equal(strlen(err.text), 999);
  heddle__at_device(HEDDLE_EFAILED, &err, "sim:1");
  assert_int_equal(strlen(err.text), HEDDLE__FAILURE_TEXT - 1);
  heddle__prefix(&err, HEDDLE_EFAILED, "%s", "before ");
  assert_int_equal(strlen(err.text), HEDDLE__FAILURE_TEXT - 1);
  assert_int_equal(strncmp(err.text, "before xxx", 10), 0);
  assert_string_equal(failure_of(&err, HEDDLE_OK).device, "sim:1");
  for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xC3\xA4", 3); /* no character is cut */
  heddle__fail(&err, HEDDLE_EFAILED, "x%s", text);
  heddle__at_node(HEDDLE_EFAILED, &err, 1, NULL);
  assert_int_equal(strlen(err.text), HEDDLE__FAILURE_TEXT - 1);
  heddle__fail(&err, HEDDLE_EFAILED, "%s", text);
  heddle__at_node(HEDDLE_EFAILED, &err, 1, text);
  assert_int_equal(strlen(err.text), HEDDLE__FAILURE_TEXT - 2);
  const heddle_failure f = failure_of(&err, HEDDLE_OK);
  assert_true(strlen(f.node_name) > 100 && strlen(f.node_name) < sizeof f.node_name);
}

static void another_text_has_no_members(void **state) {
  (void)state;
  heddle_error err = used();
  assert_none(&err);
  heddle__fail(&err, HEDDLE_EFAILED, "it failed");
  assert_none(&err);
  heddle__fail_on("sim:1", &err, HEDDLE_EFAILED, "it failed");
  heddle__fail(&err, HEDDLE_EFAILED, "it failed");
  assert_none(&err);
  heddle__fail_on("sim:1", &err, HEDDLE_EFAILED, "it failed");
  strcpy(err.text, "a driver's words"); /* as a plugin, which knows of no members */
  assert_none(&err);
  heddle__prefix(&err, HEDDLE_EFAILED, "node '%s': ", "a");
  assert_none(&err);
  heddle__at_node(HEDDLE_EFAILED, &err, 3, "a");
  assert_string_equal(failure_of(&err, HEDDLE_OK).device, "");
  memset(err.text, 'y', sizeof err.text); /* not ended at all */
  assert_none(&err);
  heddle__at_device(HEDDLE_EFAILED, &err, "sim:1");
  assert_int_equal(strlen(err.text), HEDDLE__FAILURE_TEXT - 1);
  assert_string_equal(failure_of(&err, HEDDLE_OK).device, "sim:1");
}

static void a_mark_stays_through_prefixes(void **state) {
  (void)state;
  heddle_error err = used(), other = used();
  strcpy(err.text, "the same words");
  strcpy(other.text, "the same words");
  assert_int_equal(heddle_error_origin(&err), 0);
  const uint64_t first = heddle_error_mark(&err), second = heddle_error_mark(&other);
  assert_true(first != 0 && second != 0 && first != second);
  assert_none(&err); /* it names no device and no node */
  heddle__prefix_on("sim:1", &err, HEDDLE_EFAILED, "node '%s': ", "conv1");
  heddle__at_node(HEDDLE_EFAILED, &err, 7, "conv1");
  heddle__unprefix(&err, "node 'conv1': ");
  assert_int_equal(heddle_error_origin(&err), first);
  assert_string_equal(failure_of(&err, HEDDLE_OK).device, "sim:1");
  const heddle_error copy = err;
  assert_int_equal(heddle_error_origin(&copy), first);
  assert_int_equal(heddle_error_origin(&other), second);
  heddle__copy_members(&err, &other);
  assert_int_equal(heddle_error_origin(&other), first);
  const uint64_t third = heddle_error_mark(&err); /* by the callback that caught it and failed with it */
  assert_true(third != first && heddle_error_origin(&err) == third);
  strcpy(err.text, "other words");
  assert_int_equal(heddle_error_origin(&err), 0);
  heddle__fail(&other, HEDDLE_EFAILED, "the same words");
  assert_int_equal(heddle_error_origin(&other), 0);
  assert_int_equal(heddle_error_mark(NULL), 0);
  assert_int_equal(heddle_error_origin(NULL), 0);
}

static void null_is_taken(void **state) {
  (void)state;
  heddle_error err = used();
  assert_none(NULL);
  assert_int_equal(heddle__at_device(HEDDLE_EFAILED, NULL, "sim:1"), HEDDLE_EFAILED);
  assert_int_equal(heddle__at_node(HEDDLE_EFAILED, NULL, 0, "a"), HEDDLE_EFAILED);
  assert_int_equal(heddle__at_operand(HEDDLE_EFAILED, NULL, 0), HEDDLE_EFAILED);
  assert_int_equal(heddle__fail_on(NULL, NULL, HEDDLE_EFAILED, "it"), HEDDLE_EFAILED);
  assert_int_equal(heddle__prefix_on("sim:1", NULL, HEDDLE_EFAILED, "it"), HEDDLE_EFAILED);
  heddle__unprefix(NULL, "it");
  heddle__fail_on(NULL, &err, HEDDLE_EFAILED, "it");
  assert_none(&err);
  assert_int_equal(heddle_error_failure(&err, NULL), HEDDLE_EINVAL);
  heddle_failure small = {.struct_size = 8, .node = 5};
  assert_int_equal(heddle_error_failure(&err, &small), HEDDLE_EINVAL);
  assert_int_equal(small.node, 5);
}

CASES(CASE(members_are_set), CASE(a_rank_alone_is_known), CASE(the_first_stays), CASE(a_prefix_keeps_members),
      CASE(a_text_with_members_is_cut), CASE(another_text_has_no_members), CASE(a_mark_stays_through_prefixes),
      CASE(null_is_taken))
