/* core/failure.c: the members of an error beside its text, as a record in the last bytes of the text's room. */
#include "core/failure.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "heddle/text.h"
#include "plugins/common/fnv.h"

typedef struct members {
  uint64_t mark;   /* MARK: there is a record */
  uint64_t sum;    /* of the text that it belongs to */
  uint64_t origin; /* of heddle_error_mark; 0: none */
  uint32_t node;
  int32_t operand;
  int32_t rank;
  char device[64];
  char name[112]; /* of the node */
} members;

#define MARK UINT64_C(0x6865646c6d656d33)

_Static_assert(HEDDLE__FAILURE_TEXT + sizeof(members) <= sizeof((heddle_error *)0)->text, "no room behind the text");
_Static_assert(sizeof(((heddle_failure *)0)->device) >= sizeof(((members *)0)->device), "a public member is too small");
_Static_assert(sizeof(((heddle_failure *)0)->node_name) >= sizeof(((members *)0)->name),
               "a public member is too small");

static char *place(const heddle_error *err) {
  return (char *)(uintptr_t)err->text + sizeof err->text - sizeof(members);
}

static members load(const heddle_error *err) {
  members m;
  memcpy(&m, place(err), sizeof m);
  return m;
}

static bool is_ended(const heddle_error *err) {
  return memchr(err->text, '\0', HEDDLE__FAILURE_TEXT) != NULL;
}

bool heddle__has_members(const heddle_error *err) {
  const members m = load(err);
  return m.mark == MARK && is_ended(err) && m.sum == fnv1a_text(err->text);
}

static void store(heddle_error *err, members *m) {
  err->text[sizeof err->text - 1] = '\0'; /* a plugin may have left it open */
  if (!is_ended(err)) (void)heddle_text_clean(err->text, err->text, HEDDLE__FAILURE_TEXT); /* cuts no character */
  m->mark = MARK;
  m->sum = fnv1a_text(err->text);
  memcpy(place(err), m, sizeof *m);
}

void heddle__clear_members(heddle_error *err) {
  memset(place(err), 0, sizeof(uint64_t)); /* the mark */
}

void heddle__seal_members(heddle_error *err) {
  members m = load(err);
  store(err, &m);
}

/* The members to be changed: empty ones where there are none. */
static members open_members(const heddle_error *err) {
  members m;
  if (heddle__has_members(err)) return load(err);
  memset(&m, 0, sizeof m);
  m.node = HEDDLE__NO_NODE;
  m.operand = m.rank = -1;
  return m;
}

static void copy(char *to, size_t size, const char *from) {
  size_t n = strlen(from);
  if (n >= size) n = size - 1;
  memcpy(to, from, n);
  to[n] = '\0';
}

heddle_status heddle__at_device(heddle_status status, heddle_error *err, const char *device) {
  if (status == HEDDLE_OK || err == NULL || device == NULL) return status;
  members m = open_members(err);
  if (m.device[0] == '\0') copy(m.device, sizeof m.device, device);
  store(err, &m);
  return status;
}

heddle_status heddle__fail_on(const char *device, heddle_error *err, heddle_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vfail(err, status, format, args);
  va_end(args);
  return heddle__at_device(status, err, device);
}

heddle_status heddle__prefix_on(const char *device, heddle_error *err, heddle_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vprefix(err, status, format, args);
  va_end(args);
  return heddle__at_device(status, err, device);
}

heddle_status heddle__at_node(heddle_status status, heddle_error *err, uint32_t index, const char *name) {
  if (status == HEDDLE_OK || err == NULL) return status;
  members m = open_members(err);
  if (m.name[0] == '\0' && m.node == HEDDLE__NO_NODE) {
    m.node = index;
    copy(m.name, sizeof m.name, name != NULL ? name : "");
  }
  store(err, &m);
  return status;
}

heddle_status heddle__at_operand(heddle_status status, heddle_error *err, uint32_t operand) {
  if (status == HEDDLE_OK || err == NULL) return status;
  members m = open_members(err);
  if (m.operand < 0 && operand <= INT32_MAX) m.operand = (int32_t)operand;
  store(err, &m);
  return status;
}

heddle_status heddle__at_rank(heddle_status status, heddle_error *err, uint32_t rank) {
  if (status == HEDDLE_OK || err == NULL) return status;
  members m = open_members(err);
  if (m.rank < 0 && rank <= INT32_MAX) m.rank = (int32_t)rank;
  store(err, &m);
  return status;
}

void heddle__copy_members(const heddle_error *from, heddle_error *to) {
  if (to == NULL || !heddle__has_members(from)) return;
  members m = load(from);
  store(to, &m);
}

const char *heddle__failed_device(const heddle_error *err) {
  const char *device = place(err) + offsetof(members, device);
  return heddle__has_members(err) && device[0] != '\0' ? device : NULL;
}

const char *heddle__failed_node(const heddle_error *err) {
  const char *name = place(err) + offsetof(members, name);
  return heddle__has_members(err) && name[0] != '\0' ? name : NULL;
}

int32_t heddle__failed_rank(const heddle_error *err) {
  return heddle__has_members(err) ? load(err).rank : -1;
}

uint64_t heddle_error_mark(heddle_error *err) {
  static atomic_ullong last;
  if (err == NULL) return 0;
  members m = open_members(err);
  m.origin = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
  store(err, &m);
  return m.origin;
}

uint64_t heddle_error_origin(const heddle_error *err) {
  return err != NULL && heddle__has_members(err) ? load(err).origin : 0;
}

heddle_status heddle_error_failure(const heddle_error *err, heddle_failure *out) {
  heddle_failure f = {.struct_size = sizeof f, .node = -1, .operand = -1, .rank = -1};
  if (out == NULL || out->struct_size < offsetof(heddle_failure, node_name) + sizeof f.node_name) return HEDDLE_EINVAL;
  const uint32_t room = out->struct_size < sizeof f ? out->struct_size : (uint32_t)sizeof f;
  bool known = false;
  if (err != NULL && heddle__has_members(err)) {
    const members m = load(err);
    known = m.device[0] != '\0' || m.name[0] != '\0' || m.node != HEDDLE__NO_NODE || m.operand >= 0 || m.rank >= 0;
    f.node = m.node <= INT32_MAX ? (int32_t)m.node : -1;
    f.operand = m.operand;
    f.rank = m.rank;
    memcpy(f.device, m.device, sizeof m.device);
    memcpy(f.node_name, m.name, sizeof m.name);
  }
  f.struct_size = room;
  memcpy(out, &f, room);
  return known ? HEDDLE_OK : HEDDLE_ENOTFOUND;
}
