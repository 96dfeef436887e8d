/* Keeping libraries loaded: what is loaded between two calls here stays for the life of the process. */
#ifndef HEDDLE_PLUGINS_VULKAN_PIN_H
#define HEDDLE_PLUGINS_VULKAN_PIN_H

#include "heddle/plugin.h"

/* How many objects are loaded now. */
uint32_t vlk_objects_loaded(void);

/* Keeps those that were loaded since there were so many. What fails is left as it is. */
void vlk_objects_keep(const heddle_host *host, uint32_t since);

#endif
