"""The labels of usage preferences, each with a description for authors."""

# Label -> the uses that it covers.
STRING_LABELS = {
    "tdm": "any automated process that extracts information",
    "ai": "training or use of any machine learning system",
    "genai": "training or use of systems that can generate content",
    "search": "search indexes and applications",
}
DICTIONARY_LABELS = {
    "train-ai": "training of models that generate content",
    "search": "search applications that lead to the content",
    "ai-use": "input of a generative model",
    "ai-output": "output of an AI system (draft 04)",
    "train-genai": "training of generative models (drafts 02 and 03)",
    "bots": "any automated processing (drafts 03 and 04)",
    "all": "any automated processing (draft 02)",
    "tdm": "text and data mining (draft 01)",
    "ai": "training of models (draft 01)",
    "genai": "training of generative models (draft 01)",
    "inference": "input of any model (draft 01)",
}

# Word of another vocabulary -> the label with nearly the same meaning.
MEANT_IN_STRINGS = {
    **dict.fromkeys(
        ("train-ai", "ai-train", "ai-input", "ai-use", "ai-all", "noai", "inference", "train"), "ai"
    ),
    **dict.fromkeys(("train-genai", "ai-output"), "genai"),
    **dict.fromkeys(("bots", "all"), "tdm"),
    "ai-index": "search",
}
MEANT_IN_DICTIONARIES = {
    **dict.fromkeys(("noai", "train", "ai-all", "ai-training"), "train-ai"),
    "ai-index": "search",
}
