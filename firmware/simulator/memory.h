/* Memories as a bus sees them: so many cycles until the first word of a burst, so many until each further one. */
#ifndef UACCEL_SIMULATOR_MEMORY_H
#define UACCEL_SIMULATOR_MEMORY_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "image.h"

namespace uaccel {

struct Memory {
    uint32_t origin;
    bool writable;
    int first; /* cycles that the bus waits for the first word */
    int next;  /* and for each that follows in the same burst */
    std::vector<uint8_t> bytes;
    const void *owner = nullptr; /* the bus whose burst is under way */

    bool holds(uint32_t address, size_t count = 1) const
    {
        return address >= origin && size_t{address - origin} + count <= bytes.size();
    }

    uint32_t word(uint32_t address) const
    {
        uint32_t value;
        memcpy(&value, bytes.data() + (address - origin), sizeof value);
        return value;
    }

    void put(uint32_t address, uint32_t value, unsigned lanes)
    {
        for (unsigned lane = 0; lane < 4; ++lane) {
            if ((lanes >> lane & 1u) != 0) {
                bytes[address - origin + lane] = static_cast<uint8_t>(value >> (8 * lane));
            }
        }
    }
};

struct Memories {
    std::vector<Memory> all;

    Memory *at(uint32_t address, size_t count = 1)
    {
        for (Memory &memory : all) {
            if (memory.holds(address, count)) {
                return &memory;
            }
        }
        return nullptr;
    }

    void load(const std::vector<Part> &parts)
    {
        for (Memory &memory : all) {
            memory.owner = nullptr;
        }
        for (const Part &part : parts) {
            Memory *const memory = at(part.address, part.bytes.size());
            if (memory == nullptr) {
                stop("the firmware has " + std::to_string(part.bytes.size()) + " bytes where no memory is");
            }
            memcpy(memory->bytes.data() + (part.address - memory->origin), part.bytes.data(), part.bytes.size());
        }
    }
};

/* One bus of the core: when its access is answered. Who has begun a burst keeps its memory until the end. */
class Bus {
public:
    /* Of this cycle: whether the word is there. `memory`: NULL for devices, which answer at once. */
    bool answers(Memory *memory, bool ends)
    {
        if (left_ < 0) {
            if (memory != nullptr && memory->owner != nullptr && memory->owner != this) {
                return false;
            }
            left_ = memory == nullptr ? 0 : (memory->owner == this ? memory->next : memory->first);
            if (memory != nullptr) {
                memory->owner = this;
            }
        }
        if (left_-- > 0) {
            return false;
        }
        if (memory != nullptr && ends) {
            memory->owner = nullptr;
        }
        return true;
    }

    void reset()
    {
        left_ = -1;
    }

private:
    int left_ = -1; /* cycles; -1: no access is under way */
};

} // namespace uaccel

#endif
