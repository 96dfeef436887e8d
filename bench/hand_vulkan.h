/* bench/hand_vulkan.h: a chain of Adds on the first Vulkan device, written by hand on Vulkan itself. */
#ifndef BENCH_HAND_VULKAN_H
#define BENCH_HAND_VULKAN_H

/* Makes device, pipeline and buffers, and records one command buffer: `nodes` dispatches, each the previous result plus
 * x on vectors of `width` floats, a multiple of 4, with a barrier between them. The first previous result, y, and x hold `value`
 * everywhere. Ends the program with words when something fails: with status 77 where there is no Vulkan device. */
void hand_vk_prepare(int nodes, int width, float value);

/* One run: one vkQueueSubmit, one wait. */
void hand_vk_run(void);

/* The last run's result, `width` floats, until the next run. */
const float *hand_vk_result(void);

#endif
