/* What any bus asks of its two sides: who offers something keeps it until it is taken, and no output follows an input
 * within a cycle. */
#ifndef UACCEL_RTL_RULES_H
#define UACCEL_RTL_RULES_H

#include <array>
#include <string>

#include "uaccel_rtl.h"

namespace uaccel_rtl {

/* What goes with an offer, as numbers. */
typedef std::array<uint64_t, 5> Payload;

/* One direction of a bus that is driven by the RTL: `what` names its valid. */
class Channel {
  public:
    Channel(Bench &bench, const char *what) : bench_(bench), what_(what) {}

    void reset()
    {
        waits_ = false;
    }

    /* At the end of the first half of each cycle. */
    void sample(bool valid, bool ready, const Payload &payload)
    {
        if (bench_.has_reset() && valid) {
            bench_.violates((what_ + " is 1 in reset").c_str());
        }
        if (waits_ && !valid) {
            bench_.violates((what_ + " falls before what it offers was taken").c_str());
        }
        if (waits_ && valid && payload != payload_) {
            bench_.violates(("what " + what_ + " offers changes before it was taken").c_str());
        }
        waits_ = valid && !ready && !bench_.resets();
        payload_ = payload;
    }

  private:
    Bench &bench_;
    const std::string what_;
    bool waits_ = false;
    Payload payload_ = {};
};

/* Bits of a beat's bytes that count. */
inline uint64_t lanes(uint64_t strobes)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        bits |= (strobes >> i & 1u) * 0xFFull << 8 * i;
    }
    return bits;
}

/* Changes inputs between two edges of the clock, and looks at outputs. A side has `inputs(visit)`, which calls
 * visit(name, bits to change, port), and `outputs(visit)`, which calls visit(name, port). All is as before afterwards. */
template <class Side> class Probe {
  public:
    Probe(Bench &bench, Side &side) : bench_(bench), side_(side) {}

    void look()
    {
        const Numbers before = outputs();
        const Numbers kept = inputs();
        if (differs(before, kept, static_cast<uint32_t>(bench_.now() * 2654435769u >> 8) | 1u) != nullptr) {
            tell(before, kept);
        }
    }

  private:
    static constexpr uint32_t MOST = 16;
    typedef std::array<uint64_t, MOST> Numbers;

    Numbers inputs()
    {
        Numbers all = {};
        uint32_t i = 0;
        side_.inputs([&](const char *, uint64_t, auto &port) { all[i++] = static_cast<uint64_t>(port); });
        return all;
    }

    Numbers outputs()
    {
        Numbers all = {};
        uint32_t i = 0;
        side_.outputs([&](const char *, auto &port) { all[i++] = static_cast<uint64_t>(port); });
        return all;
    }

    void set(const Numbers &kept, uint32_t chosen)
    {
        uint32_t i = 0;
        side_.inputs([&](const char *, uint64_t bits, auto &port) {
            const uint64_t value = kept[i] ^ ((chosen >> i & 1u) != 0 ? bits : 0);
            port = static_cast<std::remove_reference_t<decltype(port)>>(value);
            ++i;
        });
        bench_.settle();
    }

    /* The name of an output that follows the chosen inputs. */
    const char *differs(const Numbers &before, const Numbers &kept, uint32_t chosen)
    {
        set(kept, chosen);
        const char *found = nullptr;
        uint32_t i = 0;
        side_.outputs([&](const char *name, auto &port) {
            found = static_cast<uint64_t>(port) != before[i++] ? name : found;
        });
        set(kept, 0);
        return found;
    }

    void tell(const Numbers &before, const Numbers &kept)
    {
        std::string said = "an output follows inputs within a cycle";
        uint32_t i = 0;
        std::array<const char *, MOST> names = {};
        side_.inputs([&](const char *name, uint64_t, auto &) { names[i++] = name; });
        for (uint32_t one = 0; one < i; ++one) {
            const char *const output = differs(before, kept, 1u << one);
            said = output == nullptr ? said : std::string(output) + " follows " + names[one] + " within a cycle";
        }
        bench_.violates(said.c_str());
    }

    Bench &bench_;
    Side &side_;
};

} // namespace uaccel_rtl

#endif
