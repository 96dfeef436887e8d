/* Regions of images of which the number alone changes: planned, prepared and bound as the region of one image, which is run
 * for each that there is. So layouts, parts and primitives are those of a fixed shape, and a launch is resized by a
 * number. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_IMAGES_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_IMAGES_H

#include "onednn_internal.h"

/* As onednn_query and onednn_prepare; *made is 0 where the region is none of these. */
heddle_status images_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                           uint32_t *made, bool *only, heddle_error *err);
heddle_status images_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                             onednn_op **out, uint32_t *made, heddle_error *err);

#endif
