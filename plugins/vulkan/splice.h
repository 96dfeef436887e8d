/* SPIR-V of an elementwise chain, made without a compiler: the body of one function of a template module
 * (shaders/fused.comp) is replaced by calls of the template's other functions, one a step of the expression. */
#ifndef HEDDLE_PLUGINS_VULKAN_SPLICE_H
#define HEDDLE_PLUGINS_VULKAN_SPLICE_H

#include "plugins/common/chain.h"

/* Makes the module of a chain's expression from a template of bytes bytes: *out is *out_bytes of SPIR-V, from
 * host->alloc, for the caller to free. HEDDLE_EINTERNAL where the template is not SPIR-V or lacks a function. Pure. Any
 * thread. */
heddle_status vlk_splice(const heddle_host *host, const uint32_t *words, uint64_t bytes, const expr *program,
                         uint32_t **out, uint64_t *out_bytes, heddle_error *err);

/* The word of shaders/ops.h for a name of operators/: HARD_SWISH for HardSwish. */
void vlk_op_word(const char *name, char word[32]);

#endif
