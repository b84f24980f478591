"""Logits of a base model with adapters as PEFT computes them in float32, for lora_test.

    python3 peft_logits.py BASE ADAPTERS TOKENS MADE OUTPUT     safetensors; inputs are tokens[:, :-1] of the first step

OUTPUT gets "logits" with ADAPTERS, and "made" with adapters that PEFT makes at random and saves in the folder MADE.
"""
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

base, adapters, tokens_path, made, output = sys.argv[1:]
tokens = load_file(tokens_path)["tokens"].long()[0]


def load():
    return AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager")


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=tokens[:, :-1], use_cache=False).logits.float().contiguous()


model = PeftModel.from_pretrained(load(), adapters)
loaded = {name for name, _ in model.named_parameters() if "lora_" in name}
wanted = load_file(f"{adapters}/adapter_model.safetensors")
assert len(loaded) == len(wanted), f"PEFT has {len(loaded)} matrices, the file {len(wanted)}"

torch.manual_seed(1)
config = LoraConfig(
    r=4,
    lora_alpha=6,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    init_lora_weights=False,
    task_type="CAUSAL_LM",
)
own = get_peft_model(load(), config)
own.save_pretrained(made)
save_file({"logits": logits(model), "made": logits(own)}, output)
