/* Layouts of a plugin's own, as a case of an operator needs them: sizes, packing on the host, and the plugin's Reorder on
 * the device. All fail the case where the plugin fails. */
#ifndef HEDDLE_CONFORMANCE_OP_LAYOUT_H
#define HEDDLE_CONFORMANCE_OP_LAYOUT_H

#include "op_case.h"

/* Bytes of an operand in a layout; 0 is row-major. Fast: of a region with HEDDLE_REGION_FAST, whose layouts may hold
 * a tensor in fewer bytes. */
uint64_t op_layout_bytes(kit *k, const op_operand *o, heddle_layout layout, bool fast);

/* The operand's values in a layout. */
void op_pack(kit *k, const op_operand *o, heddle_layout layout, void *to, uint64_t bytes);

/* Runs Reorder from one layout to another, between buffers of the device. False where query refuses it. */
bool op_reorder(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_operand *o, heddle_layout from,
                heddle_layout to, heddle_pbuffer *src, uint64_t src_offset, heddle_pbuffer *dst, uint64_t dst_offset);

/* What lies in a buffer in a layout, row-major in host memory of o->bytes; false as above. */
bool op_unpack(kit *k, heddle_pdevice *dev, heddle_pstream *stream, const op_operand *o, heddle_layout layout,
               heddle_pbuffer *src, uint64_t offset, void *to);

#endif
