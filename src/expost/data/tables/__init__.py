"""Tables as row blocks: NumPy arrays and data frames, read where they lie."""

from expost.data.tables.array import ArrayTable as ArrayTable
from expost.data.tables.base import Table as Table
from expost.data.tables.encoded import EncodedTable as EncodedTable
from expost.data.tables.frame import FrameTable as FrameTable
from expost.data.tables.open import open_table as open_table
