/* Formats of device code, and whether bytes of one are whole: drivers get a pointer without a length, and would read on
 * where a file was cut off. */
#ifndef HEDDLE_PLUGINS_COMMON_GPU_IMAGE_H
#define HEDDLE_PLUGINS_COMMON_GPU_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros that stand behind an image's bytes: texts end with one, and a driver looks at the first words of whatever it
 * is. */
enum { GPU_IMAGE_PAD = 64 };

/* Is format one of a comma list? */
bool gpu_image_has_format(const char *list, const char *format);

/* Is it a text for the vendor's compiler? */
bool gpu_image_is_source(const char *format);

/* May these bytes be handed on without their length? Texts (ptx, cuda, hip) have no zero inside; a cubin, a code object
 * (hsaco) and a fatbin say how long they are, which is no longer than bytes. Else words in why. Any thread. */
bool gpu_image_is_whole(const char *format, const void *data, uint64_t bytes, char *why, size_t why_bytes);

#endif
