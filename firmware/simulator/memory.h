/* Memories as a bus sees them: so many cycles until the first word of a burst, so many until each further one. One access
 * at a time: who has begun a burst keeps its memory until the end, and masters that wait take turns. */
#ifndef UACCEL_SIMULATOR_MEMORY_H
#define UACCEL_SIMULATOR_MEMORY_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "image.h"

namespace uaccel {

constexpr int kBusesOfCore = 2; /* the first masters; they ask until they are answered */

struct Memory {
    uint32_t origin;
    bool writable;
    int first; /* cycles that the bus waits for the first word */
    int next;  /* and for each that follows in the same burst */
    std::vector<uint8_t> bytes;
    int owner = -1;              /* the master whose burst is under way */
    int turn = 0;                /* the one that came last */
    uint64_t free_at = 0;        /* a word has gone in the cycle before */
    std::vector<uint64_t> asked{}; /* of each master, a cycle after it last did; 0: it is served */

    bool holds(uint32_t address, size_t count = 1) const
    {
        return address >= origin && size_t{address - origin} + count <= bytes.size();
    }

    /* Whether a master wants this memory. A device that no longer asks has given it up. */
    bool wanted_by(int master, uint64_t now) const
    {
        return asked[master] != 0 && asked[master] >= now;
    }

    /* A master asks, in this cycle. Where the memory is free, those behind the one that came last go first. */
    bool is_for(int master, uint64_t now)
    {
        if (asked.size() <= size_t(master)) {
            asked.resize(master + 1);
        }
        asked[master] = now + 1;
        if (owner == master) {
            return true;
        }
        if (owner >= 0 && (owner < kBusesOfCore || wanted_by(owner, now))) {
            return false;
        }
        const int masters = int(asked.size());
        for (int next = (turn + 1) % masters; next != master; next = (next + 1) % masters) {
            if (wanted_by(next, now)) {
                return false;
            }
        }
        return true;
    }

    /* A word goes, if none has in this cycle. */
    bool gives(bool ends, uint64_t now)
    {
        if (now < free_at) {
            return false;
        }
        free_at = now + 1;
        if (ends) {
            asked[owner] = 0;
            owner = -1;
        }
        return true;
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
            memory.owner = -1;
            memory.turn = 0;
            memory.free_at = 0;
            memory.asked.clear();
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

/* A master of memories: a bus of the core, or reads or writes of a device. */
class Bus {
public:
    explicit Bus(int master) : master_(master) {}

    /* Of this cycle: whether an access of so many words goes. `memory`: NULL for devices, which answer at once. */
    bool answers(Memory *memory, bool ends, uint64_t now, int words = 1)
    {
        if (memory == nullptr) {
            return true;
        }
        if (!memory->is_for(master_, now)) {
            return false;
        }
        const bool goes_on = memory->owner == master_;
        if (!goes_on || left_ < 0) {
            left_ = (goes_on ? memory->next : memory->first) + memory->next * (words - 1);
            memory->owner = memory->turn = master_;
        }
        if (left_ > 0) {
            left_--;
            return false;
        }
        left_ = memory->gives(ends, now) ? -1 : 0;
        return left_ < 0;
    }

    void reset()
    {
        left_ = -1;
    }

private:
    int master_;
    int left_ = -1; /* cycles; -1: no access is under way */
};

} // namespace uaccel

#endif
