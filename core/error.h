/* core/error.h: fills and prefixes a heddle_error. Bounded, allocates nothing, any thread. */
#ifndef HEDDLE_CORE_ERROR_H
#define HEDDLE_CORE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "heddle/status.h"

/* Of a function that no run goes through, in a file that a release optimises for speed: it is made small instead. */
#define HEDDLE__COLD __attribute__((cold))

/* Writes status and text and returns status. err may be NULL. */
heddle_status heddle__fail(heddle_error *err, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts words before the text that is there ("node 'x' on sim:0: ..."); returns status and keeps it in err, which may be
 * NULL. Lower text is never overwritten; where the whole is too long its end is cut. */
heddle_status heddle__prefix(heddle_error *err, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same of an argument list. */
heddle_status heddle__vfail(heddle_error *err, heddle_status status, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
heddle_status heddle__vprefix(heddle_error *err, heddle_status status, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Puts "NAME: " before a text that does not begin with NAME; gives status. has_words: whether words are in the text
 * already. Both are for the wording: what is done about a failure depends on its status and members alone. */
heddle_status heddle__prefix_name(heddle_error *err, heddle_status status, const char *name);
bool heddle__has_words(const heddle_error *err, const char *words);

/* Takes words from the front of the text, where it begins with them. err may be NULL. */
void heddle__unprefix(heddle_error *err, const char *words);

/* HEDDLE_ENOMEM with what the memory was for. */
heddle_status heddle__no_memory(heddle_error *err, const char *what);

/* Static analysis looks at one file at a time: these say what the functions return. Not compiled. */
#if defined(__clang_analyzer__) && !defined(HEDDLE__ERROR_C)
#define heddle__fail(err, status, ...) (heddle__fail(err, status, __VA_ARGS__), (status))
#define heddle__prefix(err, status, ...) (heddle__prefix(err, status, __VA_ARGS__), (status))
#define heddle__no_memory(err, what) (heddle__no_memory(err, what), HEDDLE_ENOMEM)
#endif

#endif
