/* modules/tvm/ffi_object.h: values as tvm-ffi has them (heddle__any) and as packed functions have them, both ways: one set
 * of functions serves both generations. What has no place in 8 bytes crosses as a counted object of ours, laid out as
 * code of that version reads it: era21 is v0.21, whose objects begin otherwise. */
#ifndef HEDDLE_MODULES_TVM_FFI_OBJECT_H
#define HEDDLE_MODULES_TVM_FFI_OBJECT_H

#include "modules/tvm/object.h"

/* Borrowed: what the word points to lives as long as *any. spare: for bytes that lie in *any itself. False: of a type
 * that is not known. */
bool heddle__any_to_word(const heddle__any *any, bool era21, heddle__word *word, int32_t *code, heddle__bytes *spare);

/* Owned: strings and bytes are copied, references that the word carries go over into *any, or are given back where it
 * fails (false, with words). */
bool heddle__word_to_any(heddle__word word, int32_t code, bool era21, heddle__any *any);

/* What a caller holds as a function: the function itself, or an object of ours around one; NULL: around something else. */
heddle_function *heddle__handle_function(void *handle);

#endif
