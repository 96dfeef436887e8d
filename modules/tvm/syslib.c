/* modules/tvm/syslib.c: the table of registered symbols. It is filled by constructors, which run before anything is
 * set up and may run before libheddle's own, so it takes memory from malloc and is never freed. */
#include "modules/tvm/syslib.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/tvm/image.h"

typedef struct entry {
  char *name;
  void *address;
  struct entry *more; /* of a variable for a library's address: those registered before it under that name */
  void *value;        /* what has been written to such variables; NULL: nothing yet */
  bool replaced;      /* and that was not logged yet */
} entry;

/* Sorted by name. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest; a leaf */
static entry *entries;
static size_t n_entries, room;
static uint64_t changes;

/* As strcmp of a name and the three parts put together. */
static int compare(const char *name, const char *const parts[3]) {
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(parts[i]);
    int order = strncmp(name, parts[i], n);
    if (order != 0) return order;
    name += n;
  }
  return *name != '\0';
}

/* The place of a name: where it is, or where it belongs. */
static size_t place(const char *a, const char *b, const char *c, bool *is_there) {
  const char *const parts[3] = {a, b, c};
  size_t low = 0, high = entries != NULL ? n_entries : 0;
  *is_there = false;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare(entries[middle].name, parts);
    if (order == 0) *is_there = true;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* ---- registering */

static bool is_context(const char *name) {
  size_t n = strlen(name);
  return n > 4 && strcmp(name + n - 4, "_ctx") == 0;
}

static bool write_to(void *variable, void *value) {
  heddle__symbol s;
  if (heddle__image_locate(variable, &s) && (!s.is_writable || s.room < sizeof value)) return false;
  memcpy(variable, &value, sizeof value);
  return true;
}

static int insert(size_t at, const char *name, void *address) {
  if (entries == NULL || n_entries == room) {
    size_t n = room > 0 ? 2 * room : 64;
    entry *more = realloc(entries, n * sizeof *more);
    if (more == NULL) return -1;
    entries = more;
    room = n;
  }
  size_t n = strlen(name) + 1;
  char *copy = malloc(n);
  if (copy == NULL) return -1;
  memcpy(copy, name, n);
  memmove(&entries[at + 1], &entries[at], (n_entries - at) * sizeof *entries);
  entries[at] = (entry){.name = copy, .address = address};
  n_entries++;
  return 0;
}

/* The newest variable stands in the table, which is what a lookup of the name gives. */
static int add_context(entry *e, void *address) {
  for (const entry *old = e; old != NULL; old = old->more)
    if (old->address == address) return 0;
  entry *old = malloc(sizeof *old);
  if (old == NULL) return -1;
  *old = (entry){.address = e->address, .more = e->more};
  e->more = old;
  e->address = address;
  if (e->value != NULL) (void)write_to(address, e->value);
  return 0;
}

int heddle__system_register(const char *name, void *address) {
  bool is_there;
  int rc = 0;
  if (name == NULL || address == NULL) return -1;
  pthread_mutex_lock(&lock);
  size_t at = place("", "", name, &is_there);
  entry *e = is_there ? entries + at : NULL;
  if (e == NULL) rc = insert(at, name, address);
  else if (is_context(name)) rc = add_context(e, address);
  else {
    e->replaced |= e->address != address;
    e->address = address;
  }
  changes++;
  pthread_mutex_unlock(&lock);
  return rc;
}

uint64_t heddle__system_changes(void) {
  pthread_mutex_lock(&lock);
  uint64_t now = changes;
  pthread_mutex_unlock(&lock);
  return now;
}

const char *heddle__system_bind(const char *prefix, const char *name, void *value) {
  const char *wrong = NULL;
  bool is_there;
  pthread_mutex_lock(&lock);
  size_t at = place("", prefix, name, &is_there);
  entry *own = is_there ? entries + at : NULL, *e = own;
  if (own == NULL) at = place("", "", name, &is_there);
  if (own == NULL && is_there) e = entries + at;
  if (e != NULL) name = e->name;
  for (const entry *one = e; one != NULL; one = one->more)
    if (!write_to(one->address, value)) wrong = name;
  if (own != NULL) own->value = value;
  pthread_mutex_unlock(&lock);
  return wrong;
}

void heddle__system_notes(char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  pthread_mutex_lock(&lock);
  for (size_t i = 0; entries != NULL && i < n_entries; i++) {
    if (!entries[i].replaced) continue;
    entries[i].replaced = false;
    int n = snprintf(out + used, size - used, "%s%s",
                     used > 0 ? ", " : "registered twice, the last one counts: ", entries[i].name);
    if (n > 0) used += (size_t)n < size - used ? (size_t)n : size - used - 1;
  }
  pthread_mutex_unlock(&lock);
}

/* ---- what a library sees */

static bool describe(const entry *e, heddle__symbol_kind kind, heddle__symbol *out) {
  *out = (heddle__symbol){.name = e->name, .address = e->address, .room = SIZE_MAX, .is_writable = true};
  bool of_file = heddle__image_locate(e->address, out);
  if (!of_file)
    out->is_function = kind == HEDDLE__SYMBOL_FUNCTION; /* made while the program runs: as it is asked for */
  bool is_code = out->is_function;
  out->is_function = kind == HEDDLE__SYMBOL_FUNCTION; /* constants may lie beside code */
  return is_code || kind == HEDDLE__SYMBOL_DATA;
}

static bool find_in_system(const void *self, const char *head, const char *name, heddle__symbol_kind kind,
                           heddle__symbol *out) {
  bool is_there;
  pthread_mutex_lock(&lock);
  size_t at = place(head, self, name, &is_there);
  if (!is_there) at = place(head, "", name, &is_there);
  entry e = is_there ? entries[at] : (entry){.name = NULL};
  pthread_mutex_unlock(&lock);
  return is_there && describe(&e, kind, out);
}

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* The lock is not held while fn runs; names are never taken out, so that the one before shows where to go on. */
static void each(const void *self, void (*fn)(void *user, const heddle__symbol *symbol), void *user) {
  const char *prefix = self, *last = NULL;
  for (;;) {
    heddle__symbol s;
    bool is_there = false;
    pthread_mutex_lock(&lock);
    size_t at = last != NULL ? place("", "", last, &is_there) + 1 : 0;
    entry e = at < n_entries ? entries[at] : (entry){.name = NULL};
    pthread_mutex_unlock(&lock);
    if (e.name == NULL) return;
    last = e.name;
    bool mine = begins(e.name, prefix) || (begins(e.name, "__tvm_ffi_") && begins(e.name + 10, prefix));
    if (mine && (describe(&e, HEDDLE__SYMBOL_FUNCTION, &s) || describe(&e, HEDDLE__SYMBOL_DATA, &s))) fn(user, &s);
  }
}

heddle__symbols heddle__system_symbols(const char *prefix) {
  static const heddle__symbols_table table = {find_in_system, each};
  return (heddle__symbols){&table, prefix, prefix};
}
