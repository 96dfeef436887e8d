/* The parameters of the portable texts (portable.cl), which GLSL reads too: members are K_I64, or arrays of them, and
 * behind these floats, an even number of them. K_I64 is 32 bits there. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PORTABLE_PARAMS_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PORTABLE_PARAMS_H

/* Picking elements and putting them somewhere: what the members mean, each kernel of select.cl says. */
K_STRUCT(k_select, K_I64 count; K_I64 n; K_I64 inner; K_I64 axis; K_I64 mode; K_I64 wide; K_I64 rows; K_I64 dims;
         K_I64 from[K_DIMS]; K_I64 shape[K_DIMS];)

#endif
