// SPDX-License-Identifier: Apache-2.0
#include "base/ranges.h"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

namespace hone {
namespace {

nvtxDomainHandle_t domain() {
  static nvtxDomainHandle_t const kDomain = nvtxDomainCreateA("hone");
  return kDomain;
}

/// 0 where the profiler shows no payloads.
uint64_t register_payload() {
  nvtxPayloadSchemaEntry_t entries[3] = {};
  const char* names[] = {"bytes", "flops", "tactic"};
  for (size_t i = 0; i < 3; ++i) entries[i].type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, entries[i].name = names[i];
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  schema.name = "layer";
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 3;
  schema.payloadStaticSize = sizeof(RangePayload);
  return nvtxPayloadSchemaRegister(domain(), &schema);
}

}  // namespace

RangeLabel::RangeLabel(const std::string& text, std::optional<RangePayload> payload) {
  if (domain() == nullptr) return;
  text_ = nvtxDomainRegisterStringA(domain(), text.c_str());
  if (payload) payload_ = std::make_shared<RangePayload>(*payload);
}

void NamedRange::begin(const RangeLabel& label) {
  nvtxEventAttributes_t range = {};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  range.message.registered = static_cast<nvtxStringHandle_t>(label.text_);
  nvtxPayloadData_t data = {};
  if (label.payload_) {
    static const uint64_t kSchema = register_payload();
    data = {kSchema, sizeof(RangePayload), label.payload_.get()};
    range.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    range.reserved0 = 1;  // so many
    range.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(&data);
  }
  nvtxDomainRangePushEx(domain(), &range);
}

void NamedRange::end() { nvtxDomainRangePop(domain()); }

}  // namespace hone

#else  // NVIDIA's headers were not there

namespace hone {

RangeLabel::RangeLabel(const std::string&, std::optional<RangePayload>) {}
void NamedRange::begin(const RangeLabel&) {}
void NamedRange::end() {}

}  // namespace hone

#endif
