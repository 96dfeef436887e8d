/* core/failure.h: what failed, as members of an error beside its text: rank, device, node, operand, and the number of
 * heddle_error_mark. They lie in the last bytes of heddle_error.text, behind the text's end, because the struct is frozen
 * (plugin.h); a text that has them is cut to HEDDLE__FAILURE_TEXT bytes. A member that is set stays: the first is
 * nearest to the fault. heddle__fail, or a plugin that writes another text into the same error, removes them.
 * Bounded, allocates nothing, any thread. */
#ifndef HEDDLE_CORE_FAILURE_H
#define HEDDLE_CORE_FAILURE_H

#include <stdbool.h>

#include "core/error.h"

/* Of the node: not known by number. */
#define HEDDLE__NO_NODE UINT32_MAX

/* Each gives status back, so that it may stand around the call that fills err. err may be NULL, and strings too. index: of
 * the node in its graph. */
heddle_status heddle__at_device(heddle_status status, heddle_error *err, const char *device);
heddle_status heddle__at_node(heddle_status status, heddle_error *err, uint32_t index, const char *name);
heddle_status heddle__at_operand(heddle_status status, heddle_error *err, uint32_t operand);
heddle_status heddle__at_rank(heddle_status status, heddle_error *err, uint32_t rank);

/* heddle__fail and heddle__prefix of core/error.h, and heddle__at_device. */
heddle_status heddle__fail_on(const char *device, heddle_error *err, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
heddle_status heddle__prefix_on(const char *device, heddle_error *err, heddle_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The device, and the node, of an error; NULL: it names none. */
const char *heddle__failed_device(const heddle_error *err);
const char *heddle__failed_node(const heddle_error *err);

/* The rank of an error; -1: it names none. */
int32_t heddle__failed_rank(const heddle_error *err);

/* Gives a text that was written anew the members of another error. */
void heddle__copy_members(const heddle_error *from, heddle_error *to);

/* For core/error.c: removes the members (and cuts a text that reaches there), says whether there are some, and that the text before them was changed. */
#define HEDDLE__FAILURE_TEXT 800
void heddle__clear_members(heddle_error *err);
bool heddle__has_members(const heddle_error *err);
void heddle__seal_members(heddle_error *err);

#endif
