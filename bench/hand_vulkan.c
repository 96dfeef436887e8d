/* bench/hand_vulkan.c: what a careful programmer writes on Vulkan for a chain: one command buffer recorded once, one
 * pipeline, a descriptor set for each of the three ways round, a memory barrier where a dispatch reads what the one
 * before it wrote, four elements an invocation, and one submission with a fence a run. Memory is host-visible, so that nothing is copied. */
#include "hand_vulkan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { GROUP = 256, EACH = 4, BUFFERS = 4 }; /* x, y, and two that results alternate between */

static const uint32_t code[] =
#include "hand_vulkan.spv.h"
    ;

static VkDevice device;
static VkQueue queue;
static VkFence fence;
static VkCommandBuffer commands;
static float *mapped[BUFFERS];
static int results;

static void vk_check(VkResult result, const char *what) {
  if (result == VK_SUCCESS) return;
  fprintf(stderr, "hand_vulkan: %s: %d\n", what, (int)result);
  exit(result == VK_ERROR_INCOMPATIBLE_DRIVER || result == VK_ERROR_INITIALIZATION_FAILED ? 77 : 1);
}

/* The first device with a queue for compute. */
static VkPhysicalDevice open_device(uint32_t *family) {
  const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo made = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
  VkInstance instance;
  VkPhysicalDevice physical;
  VkQueueFamilyProperties families[16];
  uint32_t one = 1, n = 16;
  vk_check(vkCreateInstance(&made, NULL, &instance), "vkCreateInstance");
  const VkResult listed = vkEnumeratePhysicalDevices(instance, &one, &physical);
  if (one == 0) vk_check(VK_ERROR_INCOMPATIBLE_DRIVER, "there is no device");
  if (listed != VK_INCOMPLETE) vk_check(listed, "vkEnumeratePhysicalDevices");
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
  *family = 0;
  while (*family < n && (families[*family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++*family;
  if (*family == n) vk_check(VK_ERROR_INCOMPATIBLE_DRIVER, "the first device does not compute");
  const float priority = 1;
  const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                          .queueFamilyIndex = *family,
                                          .queueCount = 1,
                                          .pQueuePriorities = &priority};
  const VkDeviceCreateInfo opened = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
  vk_check(vkCreateDevice(physical, &opened, NULL, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, *family, 0, &queue);
  return physical;
}

static VkBuffer make_buffer(VkPhysicalDevice physical, VkDeviceSize bytes, float **at) {
  const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkBufferCreateInfo made = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  VkPhysicalDeviceMemoryProperties memory;
  VkMemoryRequirements needs;
  VkBuffer buffer;
  VkDeviceMemory held;
  void *address;
  vk_check(vkCreateBuffer(device, &made, NULL, &buffer), "vkCreateBuffer");
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  uint32_t best = memory.memoryTypeCount;
  for (uint32_t i = memory.memoryTypeCount; i-- > 0;) { /* the first of those that the device has itself, else any */
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((needs.memoryTypeBits >> i & 1) == 0 || (flags & wanted) != wanted) continue;
    if (best == memory.memoryTypeCount || (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0) best = i;
  }
  const VkMemoryAllocateInfo block = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = best};
  vk_check(best == memory.memoryTypeCount ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS, "memory that the host sees");
  vk_check(vkAllocateMemory(device, &block, NULL, &held), "vkAllocateMemory");
  vk_check(vkBindBufferMemory(device, buffer, held, 0), "vkBindBufferMemory");
  vk_check(vkMapMemory(device, held, 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory");
  *at = address;
  return buffer;
}

static VkPipeline make_pipeline(int width, VkDescriptorSetLayout *set, VkPipelineLayout *layout) {
  const uint32_t values[2] = {GROUP, (uint32_t)width};
  const VkSpecializationMapEntry places[2] = {{0, 0, sizeof values[0]}, {1, sizeof values[0], sizeof values[0]}};
  const VkSpecializationInfo constants = {2, places, sizeof values, values};
  VkDescriptorSetLayoutBinding bindings[3];
  for (uint32_t i = 0; i < 3; i++)
    bindings[i] =
        (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
  const VkDescriptorSetLayoutCreateInfo sets = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 3, .pBindings = bindings};
  vk_check(vkCreateDescriptorSetLayout(device, &sets, NULL, set), "vkCreateDescriptorSetLayout");
  const VkPipelineLayoutCreateInfo layouts = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = set};
  vk_check(vkCreatePipelineLayout(device, &layouts, NULL, layout), "vkCreatePipelineLayout");
  const VkShaderModuleCreateInfo modules = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = sizeof code, .pCode = code};
  VkShaderModule module;
  vk_check(vkCreateShaderModule(device, &modules, NULL, &module), "vkCreateShaderModule");
  const VkComputePipelineCreateInfo made = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main",
                                                      .pSpecializationInfo = &constants},
                                            .layout = *layout};
  VkPipeline pipeline;
  vk_check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &made, NULL, &pipeline), "vkCreateComputePipelines");
  return pipeline;
}

/* Of a dispatch: what it adds x to, and what it writes. */
static const int ways[3][2] = {{1, 2}, {2, 3}, {3, 2}};

static void make_sets(VkDescriptorSetLayout layout, const VkBuffer buffers[BUFFERS], VkDescriptorSet sets[3]) {
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 9};
  const VkDescriptorPoolCreateInfo pools = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 3, .poolSizeCount = 1, .pPoolSizes = &size};
  VkDescriptorPool pool;
  vk_check(vkCreateDescriptorPool(device, &pools, NULL, &pool), "vkCreateDescriptorPool");
  for (int i = 0; i < 3; i++) {
    const VkDescriptorSetAllocateInfo made = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &layout};
    vk_check(vkAllocateDescriptorSets(device, &made, &sets[i]), "vkAllocateDescriptorSets");
    const VkDescriptorBufferInfo used[3] = {{buffers[ways[i][0]], 0, VK_WHOLE_SIZE},
                                            {buffers[0], 0, VK_WHOLE_SIZE},
                                            {buffers[ways[i][1]], 0, VK_WHOLE_SIZE}};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = sets[i],
                                        .descriptorCount = 3,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = used};
    vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
  }
}

void hand_vk_prepare(int nodes, int width, float value) {
  uint32_t family;
  const VkPhysicalDevice physical = open_device(&family);
  VkBuffer buffers[BUFFERS];
  for (int i = 0; i < BUFFERS; i++) {
    buffers[i] = make_buffer(physical, (VkDeviceSize)width * sizeof(float), &mapped[i]);
    for (int k = 0; k < width; k++) mapped[i][k] = value;
  }
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkDescriptorSet sets[3];
  const VkPipeline pipeline = make_pipeline(width, &set_layout, &layout);
  make_sets(set_layout, buffers, sets);

  const VkCommandPoolCreateInfo pools = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                         .queueFamilyIndex = family};
  VkCommandPool pool;
  vk_check(vkCreateCommandPool(device, &pools, NULL, &pool), "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo made = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
  vk_check(vkAllocateCommandBuffers(device, &made, &commands), "vkAllocateCommandBuffers");
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  vk_check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  for (int i = 0; i < nodes; i++) {
    if (i > 0)
      vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                           &barrier, 0, NULL, 0, NULL);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &sets[i == 0 ? 0 : 2 - i % 2], 0,
                            NULL);
    vkCmdDispatch(commands, ((uint32_t)width / EACH + GROUP - 1) / GROUP, 1, 1);
  }
  const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                       NULL, 0, NULL);
  vk_check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  results = nodes % 2 == 0 ? 3 : 2;
  const VkFenceCreateInfo fences = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  vk_check(vkCreateFence(device, &fences, NULL, &fence), "vkCreateFence");
}

void hand_vk_run(void) {
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  vk_check(vkQueueSubmit(queue, 1, &submit, fence), "vkQueueSubmit");
  vk_check(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  vk_check(vkResetFences(device, 1, &fence), "vkResetFences");
}

const float *hand_vk_result(void) {
  return mapped[results];
}
