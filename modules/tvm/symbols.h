/* modules/tvm/symbols.h: the names that a compiled library defines, wherever they are written down: in the dynamic
 * symbols of a file that is mapped (image.h), or in the table of what objects of the program registered (syslib.h). */
#ifndef HEDDLE_MODULES_TVM_SYMBOLS_H
#define HEDDLE_MODULES_TVM_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct heddle__symbol {
  const char *name; /* the whole of it; lives as long as the library */
  void *address;
  size_t room; /* bytes from the address to the end of what is known to be mapped; SIZE_MAX: nothing is known */
  bool is_function, is_weak, is_writable;
} heddle__symbol;

typedef enum heddle__symbol_kind { HEDDLE__SYMBOL_DATA, HEDDLE__SYMBOL_FUNCTION } heddle__symbol_kind;

typedef struct heddle__symbols_table {
  /* The symbol whose name is head and then name; of a system library first that with its prefix between the two.
   * Functions are in memory that can be executed, data in memory that can be read. */
  bool (*find)(const void *self, const char *head, const char *name, heddle__symbol_kind kind, heddle__symbol *out);
  /* fn gets every symbol; of a system library those with its prefix. */
  void (*each)(const void *self, void (*fn)(void *user, const heddle__symbol *symbol), void *user);
} heddle__symbols_table;

/* Any thread. self outlives it. */
typedef struct heddle__symbols {
  const heddle__symbols_table *t;
  const void *self;
  const char *prefix; /* of a system library; else "" */
} heddle__symbols;

static inline bool heddle__symbol_find(const heddle__symbols *s, const char *head, const char *name,
                                       heddle__symbol_kind kind, heddle__symbol *out) {
  return s->t->find(s->self, head, name, kind, out);
}

#endif
