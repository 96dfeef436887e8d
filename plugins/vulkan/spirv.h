/* What a launch must know of SPIR-V from outside: its entry point, the bindings of its buffers, and where its scalars lie.
 * Read from the words themselves; nothing here knows a device. */
#ifndef HEDDLE_PLUGINS_VULKAN_SPIRV_H
#define HEDDLE_PLUGINS_VULKAN_SPIRV_H

#include "plugins/common/perror.h"

#include <stdbool.h>

enum { VLK_MOST_BINDINGS = 64, VLK_MOST_SCALARS = 64, VLK_BLOCK_BYTES = 1024 };

/* One scalar of the block that holds them: push constants, or a uniform buffer. */
typedef struct vlk_scalar {
  uint32_t offset, bytes; /* 1, 2, 4 or 8 */
} vlk_scalar;

typedef struct vlk_interface {
  uint32_t version;                    /* of SPIR-V: 0x10300 */
  uint32_t local[3];                   /* invocations of a group; 0: the module computes it */
  uint64_t capabilities;               /* bits of vlk_capability */
  uint32_t n_buffers;                  /* storage buffers */
  uint32_t buffers[VLK_MOST_BINDINGS]; /* their bindings in set 0: that of the k-th argument that is a buffer is k */
  uint32_t n_scalars;
  vlk_scalar scalars[VLK_MOST_SCALARS];
  uint32_t block_bytes; /* a multiple of 4; 0: there is no block */
  bool uniform;         /* the block is a uniform buffer, at uniform_binding; else push constants */
  uint32_t uniform_binding;
} vlk_interface;

/* Capabilities that devices may lack. */
enum vlk_capability {
  VLK_NEEDS_FLOAT16 = 1,
  VLK_NEEDS_FLOAT64 = 2,
  VLK_NEEDS_INT64 = 4,
  VLK_NEEDS_INT16 = 8,
  VLK_NEEDS_INT8 = 16,
  VLK_NEEDS_STORAGE16 = 32,
  VLK_NEEDS_STORAGE8 = 64
};

/* Whether the words look like a module: its head, and instructions that end where it ends. HEDDLE_EFORMAT with a
 * message. */
heddle_status vlk_spirv_check(const uint32_t *words, uint64_t count, heddle_error *err);

/* The interface of a compute entry point of words that were checked; scratch memory is the host's. HEDDLE_ENOTFOUND where
 * there is no such entry point, HEDDLE_EFORMAT and HEDDLE_EUNSUPPORTED with a message. Any thread. */
heddle_status vlk_spirv_read(const heddle_host *host, const uint32_t *words, uint64_t count, const char *entry,
                             vlk_interface *out, heddle_error *err);

#endif
